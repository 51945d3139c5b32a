// Tests of what refusals say: of which file, by which name, and what to do.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
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
  await run("mkdir", "/here", "/m");
  writeFileSync(join(client.folder, "text"), "abc");
  await run("put", "-q", join(client.folder, "text"), "/one");
  await run("cp", "/one", "/two");
});

after(async () => {
  await server.kill("SIGKILL");
  await client.stop();
});

const run = (verb: string, ...words: string[]): Promise<VerbResult> =>
  client.run((VERBS[verb] ?? assert.fail(verb)).load(), words);
/** The exit code and the text of a refused command. */
async function refused(verb: string, ...words: string[]): Promise<string> {
  const { code, err } = await run(verb, ...words);
  return `${code} ${err}`;
}

test("a copy and a move that are refused name both paths, since either may be meant", async () => {
  const keep = "Choose another name, or add --on-conflict keep-both or replace.\n";
  for (const verb of ["cp", "mv"]) {
    const taken = `1 grove ${verb}: /one to /two: the name is taken already. ${keep}`;
    assert.equal(await refused(verb, "/one", "/two"), taken);
    assert.match(
      await refused(verb, "/one", "/nowhere/x"),
      /^3 .*: \/one to \/nowhere\/x: the directory for it does not exist\./,
    );
  }
});

test("a name at the beginning of a refusal keeps its letters", async () => {
  assert.match(await refused("cp", "m", "x"), /^1 grove cp: \/m: is a folder\. Add -r/);
  assert.match(
    await refused("cp", "one", "m", "no room"),
    /: \/no room: is not a folder .* mkdir '\/no room'\n$/,
  );
  assert.match(
    await refused("get", "/one", "/two", "my folder"),
    /^1 grove get: my folder: is not a folder on this machine\. Make it first: mkdir 'my folder'\n$/,
  );
  assert.match(await refused("put", "my file"), /^3 grove put: my file: there is no such file/);
});

test("one file whose name the server cannot store is named among many", async () => {
  const odd = join(client.folder, "new\nline");
  writeFileSync(odd, "x");
  assert.match(
    await refused("put", join(client.folder, "text"), odd, "/here"),
    /^1 grove put: .*\/new\\x0aline: the server cannot store this name: .*Send it alone, with another name/,
  );
  assert.equal((await run("put", "-q", odd, "/here/line")).code, 0);
});

test("an empty word is no folder of this machine: a mirror never fills or empties the current one for it", async () => {
  const empty = /^1 grove \w+: A path on this machine is empty\. '\.' is the folder that you are in\.\n$/;
  const before = readdirSync(".");
  assert.match(await refused("get", "-r", "--delete", "--yes", "/here", ""), empty);
  assert.match(await refused("put", "", "/here"), empty);
  assert.deepEqual(readdirSync("."), before);
});

test("what is ended by an id that nobody has says which list shows them", async () => {
  assert.match(await refused("link", "revoke", "nope"), /'grove link list' shows them\.\n$/);
});

test("a server that speaks another protocol is a typing error, for which no command tries for long", {
  timeout: 60_000,
}, async () => {
  const { env } = client;
  client.env = { ...env, SVC_AUTH_MOCK: "false", GROVE_RETRY_SECONDS: "86400" };
  const { code, err } = await run("ls");
  client.env = env;
  assert.equal(code, 7);
  assert.match(
    err,
    /^(?:The server \S+ cannot be reached: it does not speak TLS.*\n)+grove ls: .*sign in with/,
  );
});

test("a configuration that cannot be read or written is told by its file, in words", async () => {
  const { env } = client;
  client.env = { ...env, GROVE_CONFIG_DIR: join(client.folder, "text") };
  const told = await Promise.all([refused("ls"), refused("cd", "/m")]);
  client.env = env;
  for (const text of told) assert.match(text, /^1 grove \w+: \/.*\.json: is not a folder, or goes through/);
});

test("a damaged profile is told, and signs out", async () => {
  const profile = join(client.config, "profile.json");
  const before = readFileSync(profile);
  writeFileSync(profile, before.subarray(0, 20));
  const told = await refused("ls");
  assert.match(told, /^1 grove ls: \/.*profile\.json: is damaged, .*grove login --cluster cluster\.json\n$/);
  const { code, err } = await client.run(import("./logout-command.ts"), []);
  assert.deepEqual([code, /could not be told/.test(err)], [0, true], err);
  writeFileSync(profile, before);
});
