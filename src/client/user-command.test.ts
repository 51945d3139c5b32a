// `grove user`: what is asked of the servers, what is told of each, and the exit code when not all of them hold it.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { Code } from "#grpc/status.ts";
import { makeTestClient, type TestClient, type VerbResult } from "./client.fixture.ts";
import { type FakeHandlers, type FakeServer, refusal, startFakeServer } from "./fake-server.fixture.ts";

let client: TestClient;
const servers: FakeServer[] = [];

beforeEach(async () => {
  client = await makeTestClient();
});
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
  await client.stop();
});

async function serve(handlers: FakeHandlers): Promise<string> {
  const server = await startFakeServer(handlers);
  servers.push(server);
  return server.address;
}

async function signIn(handlers: FakeHandlers): Promise<void> {
  const flags = ["--mock", "admin@example.com", "--fileserver", await serve(handlers)];
  assert.equal((await client.run(import("./login-command.ts"), flags)).code, 0);
}

const user = (...words: string[]): Promise<VerbResult> => client.run(import("./user-command.ts"), words);

test("disable asks for a version above all that is known, and tells what has ended", async () => {
  const asked: { disabled: boolean; reason: string; version: bigint }[] = [];
  const known = 10n ** 15n;
  await signIn({
    listUserStates: ({ username }) => ({
      states: [
        {
          $typeName: "grove.v1.UserState",
          username,
          disabled: false,
          closesShares: false,
          version: known,
          reason: "",
          setBy: "administrator",
          setAtMs: 0n,
          tokensFromMs: 0n,
          issuer: "",
          subject: "",
        },
      ],
      more: false,
      sessions: 0,
    }),
    setUserState: ({ state }) => {
      assert.ok(state !== undefined);
      asked.push({ disabled: state.disabled, reason: state.reason, version: state.version });
      return { state, applied: true, sessionsEnded: 2, uploadsDropped: 1 };
    },
  });
  const { code, out } = await user("disable", "Dave@Example.com", "--reason", "has left");
  assert.equal(code, 0);
  assert.match(out, /^dave@example\.com is locked out: no sign-ins, no routes/);
  assert.match(out, /holds; 2 sessions and 1 begun upload ended$/m);
  assert.deepEqual(asked, [{ disabled: true, reason: "has left", version: known + 1n }]);
});

test("a decision that somebody made meanwhile is answered with a newer one", async () => {
  const versions: bigint[] = [];
  await signIn({
    listUserStates: () => ({ states: [], more: false, sessions: 0 }),
    setUserState: ({ state }) => {
      assert.ok(state !== undefined);
      versions.push(state.version);
      const isFirst = versions.length === 1;
      return {
        state: isFirst ? { ...state, disabled: false, version: state.version + 5n } : state,
        applied: !isFirst,
        sessionsEnded: 0,
        uploadsDropped: 0,
      };
    },
  });
  assert.equal((await user("disable", "dave@example.com", "--reason", "x")).code, 0);
  assert.equal(versions.length, 2);
  assert.ok((versions[1] ?? 0n) > (versions[0] ?? 0n) + 5n);
});

test("a server that does not answer is named, with what that means, and the exit code is 7", async () => {
  const handlers: FakeHandlers = {
    listUserStates: () => ({ states: [], more: false, sessions: 0 }),
    setUserState: ({ state }) => ({ ...(state === undefined ? {} : { state }), applied: true }),
  };
  await signIn(handlers);
  const [one, gone] = [await serve(handlers), await serve(handlers)];
  await servers.pop()?.stop();
  const cluster = ["--nodes", `${one},${gone}`];
  const { code, out } = await user("disable", "dave@example.com", "--reason", "x", ...cluster, "--json");
  assert.equal(code, 7);
  const told = JSON.parse(out) as { holds_everywhere: boolean; servers: { name: string; holds: boolean }[] };
  assert.equal(told.holds_everywhere, false);
  assert.deepEqual(
    told.servers.map(({ name, holds }) => [name, holds]),
    [
      [one, true],
      [gone, false],
    ],
  );
});

test("what every server refuses is told as a refusal", async () => {
  const refuse = (): never => {
    throw refusal(Code.PERMISSION_DENIED, "NOT_ADMIN");
  };
  await signIn({ listUserStates: refuse, setUserState: refuse });
  const { code, err } = await user("disable", "dave@example.com", "--reason", "x");
  assert.equal(code, 4);
  assert.match(err, /Ask an administrator of the cluster/);
});
