// Tests of `grove quota` and `grove quota set`: output, requests, and servers without inode limits.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { Code } from "#wire/framing/status.ts";
import { makeTestClient, type TestClient, type VerbResult } from "./client.fixture.ts";
import { type FakeHandlers, type FakeServer, refusal, startFakeServer } from "./fake-server.fixture.ts";

let client: TestClient;
let server: FakeServer | undefined;

beforeEach(async () => {
  client = await makeTestClient();
});
afterEach(async () => {
  await server?.stop();
  await client.stop();
});

async function signIn(handlers: FakeHandlers): Promise<void> {
  server = await startFakeServer(handlers);
  const flags = ["--mock", "alice@example.com", "--fileserver", server.address];
  assert.equal((await client.run(import("./login-command.ts"), flags)).code, 0);
}

const quota = (...words: string[]): Promise<VerbResult> => client.run(import("./quota-command.ts"), words);

const BYTES = { quotaBytes: 1_000n, usedBytes: 250n, liveBytes: 200n, trashBytes: 50n, source: "explicit" };
const INODES = { inodes: 1_500n, inodeLimit: 10_000_000n, trashInodes: 500n, inodeLimitSource: "default" };

test("quota shows files and folders with their limit, for people and for programs", async () => {
  await signIn({ getQuota: () => ({ ...BYTES, ...INODES }) });
  const { out } = await quota();
  assert.match(out, /^files and folders 1,500 \(0\.0 %\), 500 of them in the trash$/m);
  assert.match(out, /^ {2}at most +10,000,000 \(default\)$/m);
  const json = JSON.parse((await quota("--json")).out) as Record<string, unknown>;
  assert.deepEqual(
    [json["inodes"], json["trash_inodes"], json["inode_limit"], json["inode_limit_source"]],
    [1_500, 500, 10_000_000, "default"],
  );
});

test("of a server of before inode limits nothing is said about them", async () => {
  await signIn({ getQuota: () => BYTES });
  assert.doesNotMatch((await quota()).out, /folders/);
  assert.ok(!("inodes" in (JSON.parse((await quota("--json")).out) as object)));
});

test("quota set --inodes alone leaves the quota as it is: explicit in bytes, the default as the default", async () => {
  const asked: unknown[] = [];
  let source = "explicit";
  await signIn({
    getQuota: () => ({ ...BYTES, ...INODES, source }),
    setQuota: ({ username, quotaBytes, inodeLimit, keepQuota }) => {
      asked.push([username, quotaBytes, inodeLimit, keepQuota]);
      return { success: true, inodeLimit: inodeLimit === 0n ? 10_000_000n : (inodeLimit ?? 10_000_000n) };
    },
  });
  const set = await quota("set", "bob@example.com", "--inodes", "20000000");
  assert.deepEqual([set.code, set.out], [0, "bob@example.com may have 20,000,000 files and folders.\n"]);
  source = "default";
  const back = await quota("set", "bob@example.com", "--inodes", "0");
  assert.equal(back.out, "bob@example.com may have 10,000,000 files and folders, the default.\n");
  const both = await quota("set", "bob@example.com", "1KiB", "--inodes", "7", "--json");
  assert.deepEqual(JSON.parse(both.out), { username: "bob@example.com", quota_bytes: 1_024, inode_limit: 7 });
  await quota("set", "bob@example.com", "1KiB");
  assert.deepEqual(asked, [
    ["bob@example.com", 1_000n, 20_000_000n, true],
    ["bob@example.com", 0n, 0n, true],
    ["bob@example.com", 1_024n, 7n, false],
    ["bob@example.com", 1_024n, undefined, false],
  ]);
});

test("of a user whose root lives elsewhere it says how to ask there", async () => {
  await signIn({
    getQuota: () => {
      throw refusal(Code.NOT_FOUND, "NO_SUCH_PATH");
    },
  });
  for (const words of [["bob@example.com"], ["set", "bob@example.com", "--inodes", "5"]]) {
    assert.match(
      (await quota(...words)).err,
      /name the server that holds the user's files with --fileserver/,
    );
  }
});

test("a limit that the server did not set is no success, and one that is none is not sent", async () => {
  let asked = 0;
  await signIn({
    getQuota: () => BYTES,
    setQuota: () => {
      asked++;
      return { success: true };
    },
  });
  const old = await quota("set", "bob@example.com", "--inodes", "5");
  assert.equal(old.code, 1);
  assert.match(old.err, /knows no inode limits, so that none was set/);
  for (const words of [["--inodes", "4294967296"], ["--inodes", "-1"], ["--inodes", "1k"], []]) {
    assert.equal((await quota("set", "bob@example.com", ...words)).code, 1, words.join(" "));
  }
  assert.equal(asked, 1);
});

test("by the password alone nobody sees the quota that is set, so that its size must be named", async () => {
  await signIn({ setQuota: () => assert.fail("must not be asked") });
  const words = ["set", "bob@example.com", "--inodes", "5", "--admin-password-stdin"];
  const { code, err } = await client.run(import("./quota-command.ts"), words, { stdin: "admin\n" });
  assert.equal(code, 1);
  assert.match(err, /Name the size as well/);
});
