// Tests of the bound of a node's streams: slow ones go on, and silent ones end.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import type { LocalMove, MovedChunk, RootMoveStorage } from "#storage/contract/root-move.ts";
import { Code } from "#wire/framing/status.ts";
import type { CallOptions } from "#wire/grpc/client-call.ts";
import type { NodeMove } from "#wire/proto/gen/grove/v1/root_moves_pb.ts";
import { type MoveRun, MoveTarget, type MoveTargetDeps, noProgress } from "./move-target.ts";
import { SILENCE_MAX_MS, whileNotSilent } from "./silence.ts";

/** A stream that gives its messages, then waits for its end from outside. */
async function* thenSilent(count: number, clock: ManualClock, signal: AbortSignal): AsyncGenerator<number> {
  for (let at = 0; at < count; at++) {
    clock.advance(SILENCE_MAX_MS - 1);
    yield at;
  }
  clock.advance(SILENCE_MAX_MS - 1);
  assert.equal(signal.aborted, false);
  clock.advance(1);
  signal.throwIfAborted();
}

test("a stream that is slow takes its time, and one that is silent for 30 s ends", async () => {
  const clock = new ManualClock();
  const { signal } = new AbortController();
  const got: number[] = [];
  const read = async (): Promise<void> => {
    for await (const at of whileNotSilent({ clock, signal }, (end) => thenSilent(100, clock, end))) {
      got.push(at);
      // The reader's own time, such as that of its disk, is no silence.
      clock.advance(2 * SILENCE_MAX_MS);
    }
  };
  await assert.rejects(read(), { code: Code.DEADLINE_EXCEEDED, message: /has sent nothing for 30 s/ });
  assert.equal(got.length, 100);
});

test("a stream ends with what ends its reader, and a failure of its own stays what it is", async () => {
  const clock = new ManualClock();
  const stop = new AbortController();
  const stopped = whileNotSilent({ clock, signal: stop.signal }, async function* (end) {
    yield 1;
    stop.abort(new Error("stopped"));
    end.throwIfAborted();
  });
  await stopped.next();
  await assert.rejects(stopped.next(), /stopped/);
  await assert.rejects(
    whileNotSilent({ clock, signal: stop.signal }, async function* () {}).next(),
    /stopped/,
  );
  const { signal } = new AbortController();
  const failing = whileNotSilent({ clock, signal }, async function* () {
    yield* [];
    throw new Error("broken");
  });
  await assert.rejects(failing.next(), /broken/);
  // Nothing is left that could end a later one.
  clock.advance(SILENCE_MAX_MS);
});

test("a move's streams have no time limit in all, and its other calls have one", async () => {
  const limits: Record<string, unknown> = {};
  const noted = (call: string, options: { timeoutMs?: number } | undefined): void => {
    limits[call] = options?.timeoutMs;
  };
  const chunk: MovedChunk = { name: "chunk", length: 4, crc32: 0, isDamaged: false };
  const source = {
    beginExport: async (_request: unknown, options?: CallOptions) => {
      noted("beginExport", options);
      return { number: 1, usedBytes: 0n };
    },
    async *pullRows(_request: unknown, options?: CallOptions) {
      noted("pullRows", options);
      yield { piece: Buffer.from(JSON.stringify({ buckets: [], left: 0 })) };
    },
    async *pullChunk(_request: unknown, options?: CallOptions) {
      noted("pullChunk", options);
      yield { found: true, data: Buffer.alloc(chunk.length + 1) };
    },
  };
  const moves: Partial<RootMoveStorage> = {
    isNear: async () => false,
    list: () => [],
    beginImport: async () => ({}) as LocalMove,
    missingChunks: async () => [chunk],
  };
  const deps = { moves, roomFor: () => true, clock: new ManualClock() };
  const run = {
    source: source as unknown as MoveRun["source"],
    signal: new AbortController().signal,
    progress: noProgress(),
  };
  const target = new MoveTarget(deps as unknown as MoveTargetDeps, { moveId: "m" } as NodeMove, run);
  await assert.rejects(target.run(), { code: "CHECKSUM_MISMATCH" });
  assert.deepEqual(limits, { beginExport: 30_000, pullRows: undefined, pullChunk: undefined });
});
