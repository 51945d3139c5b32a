// Tests of the files that downloads write: their times of change.
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { LocalFileWriter, writeSmallFile } from "./local-file.ts";

/** The first of January 1960, the last millisecond before 1970, and a time of later. */
const TIMES_MS = [-315_619_200_000, -1, 1_234_567_890_123];

test("a fetched file has the time of change that it has on the cluster, also one before 1970", async () => {
  const folder = scratchFolder("grove-file-time-");
  for (const [at, timeMs] of TIMES_MS.entries()) {
    await writeSmallFile(folder, `small${at}`, Buffer.from("content"), timeMs);
    const writer = await LocalFileWriter.create(folder, `large${at}`);
    await writer.write(Buffer.from("content"));
    await writer.finish(timeMs);
    assert.equal(Math.round(statSync(join(folder, `small${at}`)).mtimeMs), timeMs);
    assert.equal(Math.round(statSync(join(folder, `large${at}`)).mtimeMs), timeMs);
  }
});
