// Tests that threads begin with their bundled modules, and that threads of tests do not.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { startThreadsFrom } from "./test-threads.ts";

const SOURCES = new URL("../src/", import.meta.url);
const SAYS_ITS_PLACE = `import { parentPort } from "node:worker_threads";
parentPort.postMessage([import.meta.url, process.execArgv.length]);`;

async function wordsOf(file: string | URL): Promise<[string, number]> {
  const worker = new Worker(file);
  const { promise, resolve, reject } = Promise.withResolvers<[string, number]>();
  worker.once("message", resolve).once("error", reject);
  try {
    return await promise;
  } finally {
    await worker.terminate();
  }
}

test("a thread of the code under test begins with its bundled module, one of a test with its own", async (t) => {
  const program = temporaryDirectory(t);
  mkdirSync(join(program, "dist/bin"), { recursive: true });
  const bundled = join(program, "dist/bin/echo-worker.js");
  const own = join(program, "echo-worker.mjs");
  for (const file of [bundled, own]) writeFileSync(file, SAYS_ITS_PLACE);
  startThreadsFrom(program);
  const [place, flags] = await wordsOf(new URL("any/room/echo-worker.ts", SOURCES));
  assert.equal(fileURLToPath(place), bundled);
  assert.equal(flags, 0);
  const [ownPlace, ownFlags] = await wordsOf(own);
  assert.equal(fileURLToPath(ownPlace), own);
  assert.equal(ownFlags, process.execArgv.length);
});
