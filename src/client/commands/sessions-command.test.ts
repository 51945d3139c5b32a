// Tests of `grove sessions` and `grove logout --everywhere` against a real FileServer.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, before, test } from "node:test";
import { freeGrpcPorts } from "#testing/free-ports.ts";
import { StatusError } from "#wire/framing/status.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { REASON_TRAILER } from "#wire/proto/status-table.ts";
import { makeTestClient, type TestClient } from "./client.fixture.ts";
import { type ServerProcess, startFileServer } from "./server-processes.fixture.ts";

let laptop: TestClient;
let desktop: TestClient;
let server: ServerProcess;

before(async () => {
  laptop = await makeTestClient();
  desktop = await makeTestClient();
  const [port = 0] = await freeGrpcPorts(1);
  server = await startFileServer(laptop.folder, port);
  for (const client of [laptop, desktop]) await login(client);
});
after(async () => {
  await server.kill("SIGKILL");
  await laptop.stop();
  await desktop.stop();
});

const login = async (client: TestClient): Promise<void> => {
  const words = ["--mock", "alice@example.com", "--fileserver", server.address];
  const { code, err } = await client.run(import("./login-command.ts"), words);
  assert.equal(code, 0, err);
};
const sessions = (client: TestClient, ...words: string[]) =>
  client.run(import("./sessions-command.ts"), words);

interface Listed {
  readonly sessions: readonly { session_id: string; current: boolean; address: string; expires_at: string }[];
}

async function listed(client: TestClient): Promise<Listed["sessions"]> {
  const { code, out, err } = await sessions(client, "--json");
  assert.equal(code, 0, err);
  return (JSON.parse(out) as Listed).sessions;
}

test("both devices are listed, each knows itself, and none of it is a token", async () => {
  const seen = await listed(laptop);
  assert.equal(seen.length, 2);
  assert.deepEqual(
    seen.map(({ current }) => current),
    [true, false],
  );
  assert.match(seen[0]?.session_id ?? "", /^[0-9a-f]{16}$/);
  assert.deepEqual([seen[0]?.address, seen[1]?.address], ["127.0.0.1", "127.0.0.1"]);
  assert.deepEqual(
    (await listed(desktop)).map(({ current }) => current),
    [false, true],
  );
  const { out } = await sessions(laptop);
  assert.match(out, /from 127\.0\.0\.1, this one\n {2}since \d{4}-/);
  assert.doesNotMatch(out, /sst_/);
});

test("--end ends one session and no other; an id that is nobody's is told", async () => {
  const other = (await listed(laptop)).find(({ current }) => !current);
  const { code, err } = await sessions(laptop, "--end", other?.session_id ?? "");
  assert.equal(code, 0, err);
  assert.equal((await listed(laptop)).length, 1);
  const unknown = await sessions(laptop, "--end", other?.session_id ?? "");
  assert.equal(unknown.code, 1);
  assert.match(unknown.err, /No session of yours/);
  await login(desktop);
});

test("logout --everywhere ends a download of another device at its next chunk, and every session (spec 3.4)", async () => {
  const file = join(laptop.folder, "big");
  writeFileSync(file, randomBytes(40_000_000));
  const put = await laptop.run(import("./put-command.ts"), ["-q", file, "/big"]);
  assert.equal(put.code, 0, put.err);
  const channel = new GrpcChannel({ addresses: [server.address] });
  const client = createClient(FileServer, channel);
  try {
    const { sessionToken } = await client.registerClient(
      { deviceName: "a third one" },
      { metadata: { authorization: "Bearer mock-jwt.alice@example.com" } },
    );
    const reading = client.downloadFile(
      { path: "/big" },
      { metadata: { authorization: `Bearer ${sessionToken}` } },
    );
    let bytes = 0;
    let code = 0;
    await assert.rejects(
      async () => {
        for await (const { part } of reading) {
          if (part.case === "chunk") bytes += part.value.data.length;
          if (code === 0 && bytes > 0) {
            code = -1;
            const out = await desktop.run(import("./logout-command.ts"), ["--everywhere", "--json"]);
            assert.equal(out.code, 0, out.err);
            const told = JSON.parse(out.out) as Record<string, unknown>;
            assert.deepEqual([told["sessions_ended"], told["servers_not_reached"]], [3, []]);
          }
        }
      },
      (error) => error instanceof StatusError && error.metadata.get(REASON_TRAILER) === "SESSION_UNKNOWN",
    );
    assert.ok(bytes < 40_000_000, String(bytes));
  } finally {
    channel.close();
  }
  const whoami = await desktop.run(import("./whoami-command.ts"), []);
  assert.equal(whoami.code, 2);
  // The laptop's next command signs in again silently (T21): its ID token is still valid.
  assert.equal((await listed(laptop)).length, 1);
});

/** Ends the desktop's session before the last piece of what it reads from standard input. */
async function writeOverEnd(pieces: readonly Buffer[]): Promise<{ code: number; err: string }> {
  const read = async function* (): AsyncGenerator<Buffer> {
    yield* pieces.slice(0, -1);
    const running = (await listed(laptop)).find(({ current }) => !current);
    const ended = await sessions(laptop, "--end", running?.session_id ?? "");
    assert.equal(ended.code, 0, ended.err);
    yield* pieces.slice(-1);
  };
  const stdin = Readable.from(read(), { highWaterMark: 1 });
  return await desktop.run(import("./write-command.ts"), ["/written"], { stdin });
}

test("input that cannot be read again is written whole after the session has ended, or not at all", async () => {
  await login(desktop);
  const first = await desktop.run(import("./write-command.ts"), ["/written"], { stdin: "before" });
  assert.equal(first.code, 0, first.err);
  const large = Array.from({ length: 6 }, () => randomBytes(4_000_000));
  const broken = await writeOverEnd(large);
  assert.equal(broken.code, 7, broken.err);
  assert.match(broken.err, /broke off and cannot go on by itself. Begin it again/);
  const cat = () => desktop.run(import("./cat-command.ts"), ["/written"]);
  assert.equal((await cat()).out, "before");
  const whole = await writeOverEnd([Buffer.from("all "), Buffer.from("of it")]);
  assert.equal(whole.code, 0, whole.err);
  assert.equal((await cat()).out, "all of it");
});

test("a command that runs takes no session of who signs in beside it, and none comes back after a sign-out", async () => {
  const BOB = ["--mock", "bob@example.com", "--fileserver", server.address];
  const run = (verb: Parameters<TestClient["run"]>[0], ...words: string[]) => desktop.run(verb, words);
  /** Writes a file as alice while another command runs in the same configuration. */
  const writeBeside = async (other: () => Promise<{ code: number; err: string }>) => {
    await login(desktop);
    const read = async function* (): AsyncGenerator<Buffer> {
      // The third piece is asked for once the first one was read, by a command with its session.
      yield randomBytes(1_000_000);
      yield randomBytes(1_000_000);
      const { code, err } = await other();
      assert.equal(code, 0, err);
      yield Buffer.from("rest");
    };
    const stdin = Readable.from(read(), { highWaterMark: 1 });
    return desktop.run(import("./write-command.ts"), ["/beside"], { stdin });
  };
  const taken = await writeBeside(() => run(import("./login-command.ts"), ...BOB));
  assert.equal(taken.code, 2, taken.err);
  assert.match(taken.err, /alice@example.com is signed in no more, bob@example.com is, by another command/);
  assert.equal((await run(import("./whoami-command.ts"))).out.includes("bob@example.com"), true);
  assert.equal((await run(import("./ls-command.ts"), "/")).out, "");
  const left = await writeBeside(() => run(import("./logout-command.ts")));
  assert.equal(left.code, 2, left.err);
  assert.match(left.err, /alice@example.com has signed out, by another command/);
  assert.equal((await run(import("./ls-command.ts"), "/")).code, 2);
});

test("logout --everywhere that cannot reach a server says so and ends with the code of the network", async () => {
  await server.kill("SIGKILL");
  const { code, err, out } = await laptop.run(import("./logout-command.ts"), ["--everywhere"]);
  assert.equal(code, 7, out);
  assert.match(err, /could not be asked: sessions there may go on/);
});
