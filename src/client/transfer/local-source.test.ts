// Tests of when a file counts as changed, and that the last piece of a changed one is never given.
import assert from "node:assert/strict";
import { appendFileSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { COARSE_FILE_TIME_MS, FILE_TIME_MS } from "#client/terminal/limits.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import {
  isSameState,
  isSettled,
  type SourceState,
  settledState,
  stateOf,
  unchanged,
} from "./local-source.ts";
import { readChunks } from "./upload.ts";

const CHANGED = { code: "LOCAL_FILE", message: /changed while it was read$/ };

interface Lab {
  readonly path: string;
  readonly handle: FileHandle;
  look(): Promise<SourceState>;
}

async function setUp(t: TestContext, bytes: number): Promise<Lab> {
  const folder = scratchFolder("grove-source-");
  const path = join(folder, "file");
  writeFileSync(path, Buffer.alloc(bytes, "a"));
  const handle = await open(path, "r");
  t.after(async () => {
    await handle.close();
  });
  return { path, handle, look: async () => stateOf(await handle.stat({ bigint: true }), path) };
}

/**
 * Reads the file as an upload does, changes it after so many pieces, and returns the pieces before the
 * refusal.
 */
async function readAndChange(lab: Lab, after: number, change: () => void): Promise<number[]> {
  const source = await settledState(lab.look, lab.path);
  async function* pieces(): AsyncGenerator<Buffer, void, undefined> {
    let count = 0;
    for await (const piece of readChunks(lab.handle, lab.path, source.sizeBytes, 0)) {
      if (++count === after) change();
      yield piece;
    }
  }
  const given: number[] = [];
  const isSame = async (): Promise<boolean> => isSameState(source, await lab.look());
  const reading = (async () => {
    for await (const { length } of unchanged(pieces(), source.sizeBytes, { path: lab.path, isSame }))
      given.push(length);
  })();
  await assert.rejects(reading, CHANGED);
  return given;
}

const CHANGES: Readonly<Record<string, (path: string) => void>> = {
  "written to": (path) => writeFileSync(path, "b", { flag: "r+" }),
  "appended to": (path) => appendFileSync(path, "b"),
  "written to and given its old time of change again": (path) => {
    writeFileSync(path, "b", { flag: "r+" });
    utimesSync(path, 1_000_000_000, 1_000_000_000);
  },
};

for (const [what, change] of Object.entries(CHANGES)) {
  test(`of a file that is ${what} while it is read the last piece is never given`, async (t) => {
    for (const [bytes, before] of [
      [300_000, []],
      [4_000_000, []],
      [9_000_000, [4_000_000, 4_000_000]],
    ] as const) {
      const lab = await setUp(t, bytes);
      utimesSync(lab.path, 1_000_000_000, 1_000_000_000);
      assert.deepEqual(await readAndChange(lab, before.length + 1, () => change(lab.path)), before);
    }
  });
}

test("a file that nobody touches is given whole, and losing all its bytes is a change", async (t) => {
  const lab = await setUp(t, 9_000_000);
  const source = await settledState(lab.look, lab.path);
  const isSame = async (): Promise<boolean> => isSameState(source, await lab.look());
  let bytes = 0;
  const chunks = readChunks(lab.handle, lab.path, source.sizeBytes, 0);
  for await (const { length } of unchanged(chunks, source.sizeBytes, { path: lab.path, isSame }))
    bytes += length;
  assert.equal(bytes, 9_000_000);
  truncateSync(lab.path);
  assert.equal(await isSame(), false);
});

test("a file is settled when its last change is longer ago than a step of its disk's clock", async () => {
  const fine: SourceState = { sizeBytes: 1, mtimeMs: 1, mtimeNs: 0n, ctimeNs: 1_700_000_000_004_000_000n };
  const changedMs = 1_700_000_000_004;
  for (const sign of [1, -1]) {
    assert.equal(isSettled(fine, changedMs + sign * FILE_TIME_MS), false);
    assert.equal(isSettled(fine, changedMs + sign * (FILE_TIME_MS + 1)), true);
  }
  const coarse = { ...fine, ctimeNs: 1_700_000_000_000_000_000n };
  assert.equal(isSettled(coarse, 1_700_000_000_000 + COARSE_FILE_TIME_MS), false);
  assert.equal(isSettled(coarse, 1_700_000_000_000 + COARSE_FILE_TIME_MS + 1), true);
});

test("a file that is written to at every look is refused, one that comes to rest is taken as it is then", async (t) => {
  const lab = await setUp(t, 1);
  const busy = async (): Promise<SourceState> => {
    appendFileSync(lab.path, "b");
    // Pretends a write at this very moment: on a busy machine the check comes later than a clock step.
    return { ...(await lab.look()), ctimeNs: BigInt(Date.now()) * 1_000_000n + 1n };
  };
  await assert.rejects(settledState(busy, lab.path), CHANGED);
  let looks = 0;
  const soonAtRest = (): Promise<SourceState> => (++looks < 3 ? busy() : lab.look());
  const { sizeBytes } = await settledState(soonAtRest, lab.path);
  assert.equal(sizeBytes, (await lab.look()).sizeBytes);
  assert.ok(looks >= 3);
});

test("times of change come through to the millisecond, the first of all moments as the one after it, since 0 means now", async (t) => {
  const lab = await setUp(t, 1);
  utimesSync(lab.path, 0, 0);
  assert.equal((await lab.look()).mtimeMs, 1);
  for (const mtimeMs of [1_234_567_890_123, 1_799_999_999_999]) {
    utimesSync(lab.path, 1, mtimeMs / 1_000);
    assert.equal((await lab.look()).mtimeMs, mtimeMs);
  }
});
