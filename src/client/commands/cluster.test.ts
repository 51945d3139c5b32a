// Tests of a client's recovery: lost sessions, moved roots, restarted servers (decisions T20 to T22).
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { constants, createServer as createHttp2Server, type ServerHttp2Stream } from "node:http2";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { TRANSPARENT_RETRIES } from "#wire/framing/limits.ts";
import { makeTestClient, type TestClient, type VerbResult } from "./client.fixture.ts";
import {
  type FakeHandlers,
  type FakeServer,
  fileAttr,
  folderAttr,
  refusal,
  startFakeServer,
} from "./fake-server.fixture.ts";

const CONTENT = Buffer.from("x");
let client: TestClient;
let servers: FakeServer[] = [];

beforeEach(async () => {
  client = await makeTestClient();
});

afterEach(async () => {
  for (const server of servers) await server.stop();
  servers = [];
  await client.stop();
});

async function start(handlers: FakeHandlers, port?: number): Promise<FakeServer> {
  const server = await startFakeServer(handlers, port);
  servers.push(server);
  return server;
}

const list: FakeHandlers = { listDir: () => ({ entries: [fileAttr("a.txt", CONTENT)] }) };

async function login(server: FakeServer, ...words: string[]): Promise<VerbResult> {
  const flags = ["--mock", "alice@example.com", "--fileserver", server.address, ...words];
  return client.run(import("./login-command.ts"), flags);
}

const ls = (...words: string[]): Promise<VerbResult> => client.run(import("./ls-command.ts"), words);

test("one sign-in registers once; later verbs use the session", async () => {
  const server = await start(list);
  assert.equal((await login(server)).code, 0);
  for (let time = 0; time < 3; time++) assert.equal((await ls()).out, "a.txt\n");
  assert.deepEqual(server.registrations, ["Bearer mock-jwt.alice@example.com"]);
});

test("what is kept of a sign-in is readable by its owner alone (D23)", async () => {
  await login(await start(list));
  const folder = join(client.config, "credentials");
  assert.equal(statSync(folder).mode & 0o777, 0o700);
  assert.equal(readdirSync(folder).length, 2);
  for (const name of readdirSync(folder))
    assert.equal(statSync(join(folder, name)).mode & 0o777, 0o600, name);
  assert.equal(statSync(join(client.config, "profile.json")).mode & 0o777, 0o600);
});

test("a session that the server has lost is renewed without a word (T21)", async () => {
  const server = await start(list);
  await login(server);
  server.sessions.clear();
  const result = await ls();
  assert.deepEqual([result.code, result.out, result.err], [0, "a.txt\n", ""]);
  assert.equal(server.registrations.length, 2);
});

test("an address that does not fit the session registers once more, then gives up (T22)", async () => {
  let refusals = 1;
  const server = await start({
    listDir: () => {
      if (refusals-- > 0) throw refusal(7, "IP_MISMATCH");
      return { entries: [] };
    },
  });
  await login(server);
  assert.equal((await ls()).code, 0);
  refusals = 100;
  const result = await ls();
  assert.equal(result.code, 2);
  assert.match(result.err, /another network address.*grove login/);
});

test("without a remembered ID token a lost session asks for a new sign-in and says why (D23, T21)", async () => {
  const server = await start(list);
  await login(server, "--remember-id-token=false");
  assert.equal((await ls()).code, 0);
  assert.doesNotMatch(readFileSync(join(client.config, "credentials", "identity.json"), "utf8"), /mock-jwt/);
  server.sessions.clear();
  const result = await ls();
  assert.equal(result.code, 2);
  assert.match(result.err, /does not know your session.*was not remembered.*grove login/s);
});

test("an expired ID token is not sent; the sentence says that the sign-in has expired (T21)", async () => {
  const server = await start(list);
  await login(server);
  const path = join(client.config, "credentials", "identity.json");
  const identity = { ...(JSON.parse(readFileSync(path, "utf8")) as object), expires_at_ms: Date.now() - 1 };
  writeFileSync(path, JSON.stringify(identity));
  server.sessions.clear();
  const result = await ls();
  assert.equal(result.code, 2);
  assert.match(result.err, /sign-in at the identity provider has expired/);
  assert.equal(server.registrations.length, 1);
});

test("many calls that lose the session together register once (T21)", async () => {
  const server = await start({
    getAttr: () => folderAttr(""),
    createDirectory: () => folderAttr("x"),
    createFile: ({ mtimeMs }) => ({ ...fileAttr("a", CONTENT), mtimeMs }),
    // A file that was written within its clock's step comes this way.
    uploadFile: async (requests) => {
      await Array.fromAsync(requests);
      return { attr: fileAttr("a", CONTENT) };
    },
  });
  await login(server);
  const tree = join(client.folder, "tree");
  mkdirSync(tree);
  for (let at = 0; at < 50; at++) writeFileSync(join(tree, `f${at}`), "x");
  server.sessions.clear();
  const result = await client.run(import("./put-command.ts"), ["-q", tree]);
  assert.equal(result.code, 0, result.err);
  assert.equal(server.registrations.length, 2);
});

test("nobody is signed in: exit code 2 and what to type (D24)", async () => {
  const server = await start(list);
  const result = await ls("--fileserver", server.address);
  assert.deepEqual([result.code, result.err], [2, "grove ls: You are not signed in. Sign in: grove login\n"]);
  const json = await ls("--fileserver", server.address, "--json");
  const { error } = JSON.parse(json.err) as { error: { code: string } };
  assert.equal(error.code, "SIGN_IN_NEEDED");
});

test("a server that nobody listens on: exit code 7 (D24)", async () => {
  const server = await start(list);
  await login(server);
  await server.stop();
  client.env = { ...client.env, GROVE_RETRY_SECONDS: "1" };
  const result = await ls();
  assert.equal(result.code, 7);
  assert.match(result.err, /nothing listens there/);
});

test("a refusal that will pass is tried again (D1)", async () => {
  let calls = 0;
  const server = await start({
    listDir: () => {
      if (++calls < 3) throw refusal(14, "STARTING");
      return { entries: [] };
    },
  });
  await login(server);
  assert.equal((await ls()).code, 0);
  assert.equal(calls, 3);
});

test("mv is not sent twice when its outcome is not known, and says so", async () => {
  let calls = 0;
  const server = await start({
    getAttr: () => {
      throw refusal(5, "NO_SUCH_PATH");
    },
    rename: () => {
      calls++;
      throw refusal(14, "");
    },
  });
  await login(server);
  const { code, err } = await client.run(import("./mv-command.ts"), ["a", "b"]);
  assert.equal(code, 7);
  assert.match(err, /; it may have done this, or not\. Look whether it was done before you try again\.\n$/);
  assert.equal(calls, 1);
});

/** Signs in, and starts the server anew with other answers once a command has not reached it. */
async function restarting(handlers: FakeHandlers): Promise<void> {
  const first = await start(list);
  await login(first);
  await first.stop();
  const port = Number(first.address.split(":")[1]);
  const gone = createServer((socket) => {
    socket.destroy();
    gone.close(() => void start(handlers, port));
  });
  await once(gone.listen(port, "127.0.0.1"), "listening");
}

test("what must not run twice runs after a restart of the server that it could not reach", async () => {
  let calls = 0;
  await restarting({ unlock: () => ({ ended: ++calls }) });
  const result = await client.run(import("./unlock-command.ts"), ["--break", "a"]);
  assert.equal(result.code, 0, result.err);
  assert.equal(calls, 1);
});

test("it runs after one that refused it unseen as often as a call is made again by itself, too", async () => {
  let calls = 0;
  const first = await start(list);
  await login(first);
  await first.stop();
  const port = Number(first.address.split(":")[1]);
  let refused = 0;
  const stopping = createHttp2Server();
  stopping.on("stream", (stream: ServerHttp2Stream) => {
    stream.on("error", () => undefined);
    stream.close(constants.NGHTTP2_REFUSED_STREAM);
    if (++refused <= TRANSPARENT_RETRIES) return;
    stopping.close(() => void start({ unlock: () => ({ ended: ++calls }) }, port));
    stream.session?.close();
  });
  await once(stopping.listen(port, "127.0.0.1"), "listening");
  const result = await client.run(import("./unlock-command.ts"), ["--break", "a"]);
  assert.equal(result.code, 0, result.err);
  assert.deepEqual([refused, calls], [TRANSPARENT_RETRIES + 1, 1]);
});

test("a folder that was there before a restart is not said to be made: no answer was lost", async () => {
  await restarting({
    getAttr: () => folderAttr("a"),
    createDirectory: () => {
      throw refusal(6, "PATH_EXISTS");
    },
  });
  const result = await client.run(import("./mkdir-command.ts"), ["a"]);
  assert.match(result.err, /remove what is there first/);
});

test("an upload outlives a restart of the server: the file that was cut is sent again", async () => {
  const received: number[] = [];
  let isFirst = true;
  const handlers: FakeHandlers = {
    getAttr: () => {
      throw refusal(5, "NO_SUCH_PATH");
    },
    uploadFile: async (requests) => {
      let bytes = 0;
      for await (const request of requests as AsyncIterable<{
        part: { case?: string; value?: { data?: Uint8Array } };
      }>) {
        if (request.part.case === "chunk") bytes += request.part.value?.data?.length ?? 0;
        if (isFirst && bytes > 4_000_000) {
          isFirst = false;
          restart();
          await new Promise(() => undefined);
        }
      }
      received.push(bytes);
      return { attr: fileAttr("big", CONTENT) };
    },
  };
  const first = await startFakeServer(handlers);
  const port = Number(first.address.split(":")[1]);
  let restarted: Promise<unknown> = Promise.resolve();
  const restart = (): void => {
    restarted = first.stop().then(() => start(handlers, port));
  };
  await login(first);
  const file = join(client.folder, "big");
  writeFileSync(file, Buffer.alloc(20_000_000));
  const result = await client.run(import("./put-command.ts"), [file, "/big"]);
  await restarted;
  assert.equal(result.code, 0, result.err);
  assert.deepEqual(received, [20_000_000]);
  assert.match(result.err, /Trying again/);
});

test("logout ends the session at the server and leaves no token behind", async () => {
  let ended = 0;
  const server = await start({ ...list, endSession: () => ({ ended: ++ended }) });
  await login(server);
  const result = await client.run(import("./logout-command.ts"), []);
  assert.deepEqual([result.code, result.out], [0, "alice@example.com is signed out.\n"]);
  assert.equal(ended, 1);
  assert.deepEqual(readdirSync(join(client.config, "credentials")), []);
  assert.equal((await ls()).code, 2);
});

test("rm says that there is no trash yet and what to type", async () => {
  const server = await start({ getAttr: () => fileAttr("a", CONTENT) });
  await login(server);
  const result = await client.run(import("./rm-command.ts"), ["a"]);
  assert.equal(result.code, 1);
  assert.match(result.err, /nothing was deleted.*grove rm --permanent \/a/);
});

test("a SetQuota that the server refuses is a refusal here too: exit code 4 (spec 5.5)", async () => {
  const text = "permission denied: only cluster administrators can modify quotas";
  const server = await start({ setQuota: () => ({ success: false, error: text }) });
  await login(server);
  const result = await client.run(import("./quota-command.ts"), ["set", "bob@example.com", "32GiB"]);
  assert.equal(result.code, 4);
  assert.match(result.err, /only cluster administrators can modify quotas/);
});

test("quota set asks the server that --fileserver names, and --json is heeded", async () => {
  const asked: string[] = [];
  const answering = (name: string): FakeHandlers => ({
    setQuota: () => {
      asked.push(name);
      return { success: true };
    },
  });
  await login(await start(answering("home")));
  const other = await start(answering("other"));
  const words = ["set", "bob@example.com", "1KiB", "--fileserver", other.address, "--json"];
  const result = await client.run(import("./quota-command.ts"), words);
  assert.equal(result.code, 0, result.err);
  assert.deepEqual(asked, ["other"]);
  assert.deepEqual(JSON.parse(result.out), { username: "bob@example.com", quota_bytes: 1_024 });
});

test("the administrator's password travels as the hash of spec 5.5, and from standard input only", async () => {
  const seen: unknown[] = [];
  const server = await start({
    setQuota: (request, context) => {
      seen.push(request.username, request.quotaBytes, context.metadata.get("x-admin-password-hash"));
      return { success: true };
    },
  });
  await login(server);
  const result = await client.run(
    import("./quota-command.ts"),
    ["set", "bob@example.com", "1KiB", "--admin-password-stdin"],
    { stdin: "admin\n" },
  );
  assert.equal(result.code, 0, result.err);
  assert.deepEqual(seen, [
    "bob@example.com",
    1_024n,
    "8c6976e5b5410415bde908bd4dee15dfb167a9c873fc4bb8a81f6f2ab448a918",
  ]);
});
