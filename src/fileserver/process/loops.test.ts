// A FileServer over several loops: the tests of what loops do hold for it, and its transfers use all loops.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { bytesOf, parts, refusal, startTestNode } from "./node.fixture.ts";

const run = promisify(execFile);
const LOOPS = 2;

/**
 * Tests of what clients see that differs where a loop has the connection; each starts its nodes with as many
 * loops as the environment says. What the main thread alone decides, as names, sessions and limits, is the same
 * code over any number of loops.
 */
const OF_LOOPS = [
  // The end of a request stream and its cancellation cross threads in their order.
  "cancelled-upload",
  // A loop reads and checks the blocks of lent chunks, and stops when the main thread says so.
  "download",
  // A loop meets broken frames, and the main thread broken messages.
  "malformed-messages",
  // Chunks are reported apart from the messages that they came with, and staged when both are right.
  "resumable-upload",
  // Each loop has the certificates, and shows the main thread those of clients.
  "tls",
  // A loop writes before the main thread has decided; quota, reserve and session end it all the same.
  "upload",
  // Whatever ends an upload, files that were lent come back before they are removed.
  "upload-breaches",
];

test("the tests of what loops do hold over several of them", { timeout: 600_000 }, async () => {
  const files = OF_LOOPS.map((name) => join(import.meta.dirname, `${name}.test.ts`));
  // One process for all: most of the time of each would go to loading the same modules.
  const options = ["--test", "--test-isolation=none", "--test-timeout=120000", "--test-force-exit"];
  // What this process has loaded first, so that its threads begin with the bundle of a test run.
  const first = process.execArgv.filter((word) => word.startsWith("--import="));
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  try {
    await run(process.execPath, [...first, ...options, ...files], {
      env: { ...env, GROVE_TEST_LOOPS: String(LOOPS) },
      maxBuffer: 64 * 1_048_576,
    });
  } catch (error) {
    assert.fail(String((error as { readonly stdout?: unknown }).stdout ?? error));
  }
});

test("many clients of several loops see one node: each other's files, one quota, one session table", async () => {
  const node = await startTestNode({
    env: { SVC_ADMIN_EMAIL: "root@example.com" },
    options: { loops: LOOPS },
  });
  try {
    const admin = await node.signIn("root@example.com");
    const users = await Promise.all(Array.from({ length: 4 }, () => node.signIn("ada@example.com")));
    await admin.call.setQuota({ username: "ada@example.com", quotaBytes: 5_000_000n });
    const data = Buffer.alloc(1_000_000, "grove ");
    const uploads = await Promise.allSettled(
      users.flatMap((user, at) =>
        [1, 2, 3].map((each) => user.upload(parts(`/f${at}-${each}`, data, 300_000))),
      ),
    );
    assert.equal(uploads.filter(({ status }) => status === "fulfilled").length, 5);
    const listed = await Promise.all(
      users.map(async (user) => (await user.call.listDir({ path: "/" })).entries),
    );
    for (const entries of listed) assert.equal(entries.length, 5);
    const name = listed[0]?.[0]?.name ?? "";
    const replies = await Promise.all(users.map((user) => user.download({ path: `/${name}` })));
    for (const reply of replies) assert.ok(bytesOf(reply).equals(data));
    const [first, second] = users;
    assert.ok(first !== undefined && second !== undefined);
    await first.call.endSession({ everywhere: true });
    assert.equal((await refusal(second.call.getAttr({ path: "/" }))).reason, "SESSION_UNKNOWN");
  } finally {
    await node.stop();
  }
});
