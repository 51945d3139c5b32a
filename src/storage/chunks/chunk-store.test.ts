// Tests of chunk files: names, settlement and shared flushes.
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { systemRandom } from "#base/random.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { CHUNK_NAME_RANDOM_BYTES, isChunkName } from "./chunk-names.ts";
import { CHUNKS_PER_DIRECTORY_TURN, ChunkStore } from "./chunk-store.ts";

function makeStore(context: TestContext): {
  store: ChunkStore;
  turns: string[];
  failures: string[];
  directory: string;
} {
  const directory = temporaryDirectory(context);
  mkdirSync(join(directory, "chunks", "00"), { recursive: true });
  const turns: string[] = [];
  const failures: string[] = [];
  const noted = (turn: string) => async (name: string) => turns.push(`${turn} ${name}`);
  const openDirectories = { open: noted("open"), close: noted("close") };
  const failed = (reason: string): number => failures.push(reason);
  const random = systemRandom;
  const store = new ChunkStore({ directory, firstDirectory: "00", random, openDirectories, failed });
  return { store, turns, failures, directory };
}

test("names are random, and go to the next directory once that is remembered as open", async (context) => {
  const { store, turns } = makeStore(context);
  const first = Array.from({ length: CHUNKS_PER_DIRECTORY_TURN }, () => store.takeName());
  assert.equal(new Set(first).size, first.length);
  assert.ok(first.every((name) => isChunkName(name) && name.startsWith("00")));
  assert.deepEqual(turns, ["open 01"]);
  await Promise.resolve();
  assert.ok(store.takeName().startsWith("01"));
  store.settle(first);
  assert.deepEqual(turns.slice(1), ["close 00"]);
});

test("a directory that follows stays remembered when a chunk from elsewhere in it is settled", async (context) => {
  const { store, turns } = makeStore(context);
  for (let names = 1; names < CHUNKS_PER_DIRECTORY_TURN; names++) store.takeName();
  const adopted = `01${"a".repeat(2 * CHUNK_NAME_RANDOM_BYTES)}`;
  await store.adoptName(adopted);
  store.takeName();
  store.settle([adopted]);
  assert.deepEqual(turns, ["open 01", "open 01"]);
});

test("a directory is closed at the end only when all its chunks are settled (A-11)", async (context) => {
  const { store, turns } = makeStore(context);
  const name = store.takeName();
  await store.close();
  assert.deepEqual(turns, []);
  store.settle([name]);
  await store.close();
  assert.deepEqual(turns, ["close 00"]);
});

test("who asks for a flush of a directory gets one that begins after the asking (A-02)", async (context) => {
  const { store, failures, directory } = makeStore(context);
  const path = join(directory, "chunks", "00");
  const name = store.takeName();
  const earlier = store.flushDirectoriesOf([name]);
  const isOpen = (): boolean =>
    readdirSync("/proc/self/fd").some((descriptor) => {
      try {
        return readlinkSync(`/proc/self/fd/${descriptor}`) === path;
      } catch {
        return false;
      }
    });
  for (let tries = 0; !isOpen() && tries < 1_000_000; tries++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  // The flush under way has opened the directory; only a new one notices that it is gone.
  rmSync(path, { recursive: true });
  const later = [store.flushDirectoriesOf([name]), store.flushDirectoriesOf([name])];
  await earlier;
  for (const flush of later) await assert.rejects(flush, /ENOENT/);
  assert.equal(failures.length, 1);
});

test("a chunk file is never made over another, and unlinked whether or not it is there", async (context) => {
  const { store } = makeStore(context);
  const name = store.takeName();
  writeFileSync(store.pathOf(name), "x");
  await assert.rejects(store.create(name), /EEXIST/);
  await store.unlink(name);
  await store.unlink(name);
});
