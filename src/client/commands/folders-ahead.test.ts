// Tests that a tree's folders are made and listed ahead, so that none keeps the others waiting.
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { until } from "#testing/until.ts";
import { makeTestClient, type TestClient } from "./client.fixture.ts";
import { type FakeServer, fileAttr, folderAttr, startFakeServer } from "./fake-server.fixture.ts";

const CONTENT = Buffer.from("the content");
/** More than the small files in transfer at a time. */
const FILES = 100;

let client: TestClient;
let server: FakeServer;
/** Paths of calls, in order, with their method. */
const calls: string[] = [];
/** What a call waits for before its answer, in the current test. */
let gate: (call: string) => Promise<void> = async () => {};

async function arrived(call: string): Promise<void> {
  calls.push(call);
  await gate(call);
}

before(async () => {
  client = await makeTestClient();
  server = await startFakeServer({
    getAttr: ({ path }) => folderAttr(path.slice(1)),
    listDir: async ({ path }) => {
      await arrived(`list ${path}`);
      return { entries: path === "/tree" ? ["a", "b"].map((name) => folderAttr(name)) : [] };
    },
    createDirectory: async ({ path }) => {
      await arrived(`make ${path}`);
      return folderAttr(path.slice(1));
    },
    createFile: async ({ path, mtimeMs }) => {
      await arrived(`create ${path}`);
      return fileAttr(path.slice(1), CONTENT, { mtimeMs });
    },
  });
  const words = ["--mock", "a@b.c", "--fileserver", server.address];
  const signedIn = await client.run(import("./login-command.ts"), words);
  assert.equal(signedIn.code, 0, signedIn.err);
});

after(async () => {
  await server.stop();
  await client.stop();
});

test("get -r lists a folder while the listing of another one is under way", { timeout: 60_000 }, async () => {
  const target = join(client.folder, "out");
  // Each of the two is answered only when the other has come.
  gate = async (call) => {
    if (call.startsWith("list /tree/"))
      await until(() => calls.includes("list /tree/a") && calls.includes("list /tree/b"));
  };
  const result = await client.run(import("./get-command.ts"), ["-r", "/tree", target]);
  assert.equal(result.code, 0, result.err);
  assert.deepEqual(readdirSync(target).sort(), ["a", "b"]);
});

test("put -r sends files of one folder while many others wait for theirs", { timeout: 60_000 }, async () => {
  const tree = join(client.folder, "in");
  for (const folder of ["a", "b"]) mkdirSync(join(tree, folder), { recursive: true });
  for (let at = 0; at < FILES; at++) writeFileSync(join(tree, "a", `f${at}`), CONTENT);
  const last = join(tree, "b", "last");
  writeFileSync(last, CONTENT);
  await until(() => Date.now() - statSync(last).ctimeMs > 200);
  gate = async (call) => {
    if (call === "make /new/in/a") await until(() => calls.includes("create /new/in/b/last"));
  };
  const result = await client.run(import("./put-command.ts"), ["-r", tree, "/new"]);
  assert.equal(result.code, 0, result.err);
  assert.equal(calls.filter((call) => call.startsWith("create /new/in/")).length, FILES + 1);
});
