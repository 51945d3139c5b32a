// Tests of verbs with several paths: one that fails keeps no other from its turn, whatever the verb.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { TestClient, VerbResult } from "./client.fixture.ts";
import type { ServerProcess } from "./server-processes.fixture.ts";
import { signedInClient } from "./signed-in-client.fixture.ts";
import { VERBS } from "./verbs.ts";

let client: TestClient;
let server: ServerProcess;

before(async () => {
  ({ client, server } = await signedInClient());
});

after(async () => {
  await server.kill("SIGKILL");
  await client.stop();
});

const run = (verb: string, ...words: string[]): Promise<VerbResult> =>
  client.run((VERBS[verb] ?? assert.fail(verb)).load(), words);
/** The names in a folder. */
const names = async (folder: string): Promise<string[]> => {
  const { out } = await run("ls", folder, "--json");
  return (JSON.parse(out) as { entries: { name: string }[] }).entries.map(({ name }) => name);
};

test("each verb goes on after a path that fails, tells each, and ends with the code of the first", async () => {
  const made = await run("mkdir", "/a", "/a", "/nowhere/x", "/b", "/c");
  assert.equal(made.code, 1, made.err);
  assert.match(made.err, /^grove mkdir: .*\/a.*\ngrove mkdir: .*Add -p/);
  assert.deepEqual(await names("/"), ["a", "b", "c"]);
  const local = join(client.folder, "text");
  writeFileSync(local, "abc");
  for (const folder of ["/a", "/b"]) assert.equal((await run("put", "-q", local, folder)).code, 0);

  const listed = await run("ls", "/one", "/a", "/two", "/c", "/b");
  assert.equal(listed.code, 3);
  assert.equal(listed.out, "/a:\ntext\n\n/c:\n\n/b:\ntext\n");
  assert.deepEqual([...listed.err.matchAll(/^grove ls: .*?\/(one|two)\b/gm)].length, 2, listed.err);
  const json = await run("ls", "/one", "/c", "--json");
  assert.equal((JSON.parse(json.out) as { path: string }).path, "/c");
  assert.equal((JSON.parse(json.err) as { error: { code: string } }).error.code, "NO_SUCH_PATH");

  const shown = await run("stat", "/one", "/a", "/b");
  assert.equal(shown.code, 3);
  assert.deepEqual(
    shown.out.match(/^path .*|^$/gm)?.map((line) => line.replace(/ +/, " ")),
    ["path /a", "", "path /b", ""],
  );
  const printed = await run("cat", "/a/text", "/a", "/one", "/b/text");
  assert.deepEqual([printed.code, printed.out], [1, "abcabc"]);

  const moved = await run("mv", "/one", "/a/text", "/c");
  assert.equal(moved.code, 3);
  assert.deepEqual([await names("/a"), await names("/c")], [[], ["text"]]);
  const removed = await run("rm", "/c", "/one", "/b/text");
  assert.equal(removed.code, 1, removed.err);
  assert.match(removed.err, /Add -r[^]*\/one/);
  assert.deepEqual(await names("/b"), []);
  const restored = await run("trash", "restore", "/one", "/b/text");
  assert.equal(restored.code, 3);
  assert.deepEqual(await names("/b"), ["text"]);
});

test("what every other path would meet too ends a verb at once", async () => {
  await client.run(import("./logout-command.ts"), []);
  const { code, err } = await run("stat", "/a", "/b");
  assert.equal(code, 2);
  assert.equal(err.match(/^grove stat: /gm)?.length, 1, err);
});
