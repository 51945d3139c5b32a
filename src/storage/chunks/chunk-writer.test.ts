// Tests of a chunk file whose writes fail: it is closed only when none of them runs any more.
import assert from "node:assert/strict";
import fs, { closeSync, openSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { test } from "node:test";
import { promisify } from "node:util";
import type { ChunkStore } from "./chunk-store.ts";

test("a chunk file is closed after its last write, also when an earlier one failed", async (t) => {
  const pending: ((error: Error | null, bytes: number) => void)[] = [];
  const whole = fs.writev;
  const held = Object.assign(() => undefined, {
    [promisify.custom]: () =>
      new Promise((resolve, reject) => {
        pending.push((error, bytesWritten) => (error === null ? resolve({ bytesWritten }) : reject(error)));
      }),
  });
  fs.writev = held as unknown as typeof fs.writev;
  syncBuiltinESMExports();
  t.after(() => {
    fs.writev = whole;
    syncBuiltinESMExports();
  });
  const { ChunkWriter } = await import("./chunk-writer.ts");
  let isClosed = false;
  const store: Partial<ChunkStore> = {
    takeName: () => "name",
    create: async () => openSync("/dev/null", "w"),
    discard: async (descriptor) => {
      isClosed = true;
      closeSync(descriptor);
    },
  };
  const writer = new ChunkWriter(store as ChunkStore, 0, "alice@example.com");
  for (let at = 0; at < 2; at++) writer.append([Buffer.alloc(10)], 10).catch(() => undefined);
  const finished = assert.rejects(writer.finish(), /ENOSPC/);
  while (pending.length < 2) await new Promise(setImmediate);
  pending[0]?.(new Error("ENOSPC"), 0);
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
  assert.equal(isClosed, false);
  pending[1]?.(null, 10);
  await finished;
  assert.equal(isClosed, true);
});
