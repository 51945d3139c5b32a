// What an import has read and not stored is bounded by bytes, and not by the number of files alone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "#base/clock.ts";
import type { Cluster } from "#client/connection/cluster.ts";
import type { RemotePath } from "#client/connection/remote-path.ts";
import { IN_FLIGHT_BYTES_FIRST } from "#client/terminal/limits.ts";
import { ProgressMeter } from "#client/terminal/progress.ts";
import type { TransferReport } from "#client/transfer/transfer-report.ts";
import { UploadMemory } from "#client/transfer/upload-memory.ts";
import { NO_REPORT } from "./import-report.ts";
import { ImportRun } from "./import-run.ts";
import type { ImportEntry, ImportSource } from "./import-source.ts";

const FILES = 64;
const FILE_BYTES = 4_000_000;

async function* entries(): AsyncGenerator<ImportEntry, void, undefined> {
  yield { kind: "folder", place: "/" };
  for (let number = 0; number < FILES; number++) {
    const place = `/f${number}`;
    const facts = { sizeBytes: FILE_BYTES, mtimeMs: 1, version: "" };
    yield { kind: "file", place, folder: "/", address: place, ...facts };
  }
}

test("an import reads few files at once where they are stored slowly, whatever their number", async () => {
  const waiting: (() => void)[] = [];
  let [begun, most] = [0, 0];
  const runAt = async ({ path }: RemotePath): Promise<unknown> => {
    if (path === "/") return { nextPageToken: "", entries: () => [] };
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.push(resolve);
    begun++;
    most = Math.max(most, waiting.length);
    return promise;
  };
  const meter = new ProgressMeter(systemClock);
  const run = new ImportRun({
    cluster: { runAt } as unknown as Cluster,
    source: { name: "slow", entries } as unknown as ImportSource,
    meter,
    report: {
      folders: 0,
      fail: (_: string, error: unknown) => assert.fail(String(error)),
    } as unknown as TransferReport,
    lines: NO_REPORT,
    memory: new UploadMemory("/nowhere"),
    note: () => undefined,
    target: { root: "", path: "/" },
    byChecksum: false,
    isDryRun: false,
  }).run();
  const settled = async (): Promise<void> => {
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  await settled();
  // One alone may be larger than all that may be under way at first.
  assert.ok(FILE_BYTES > IN_FLIGHT_BYTES_FIRST);
  assert.equal(begun, 1);
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    next();
    await settled();
  }
  await run;
  assert.equal(meter.doneFiles, FILES);
  assert.ok(most > 1);
});
