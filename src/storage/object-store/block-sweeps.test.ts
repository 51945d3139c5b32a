// Tests of the order of sweeps: what a store always refuses keeps no later block from its turn.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { FIRST_SWEEP_AFTER_MS, sweepBlocks } from "./block-sweeps.ts";
import { ChunkRows } from "./chunk-blocks.fixture.ts";
import { RECOVERY_WINDOW_MS, type RemovalDeps } from "./dropped-chunks.ts";

const NEVER = new AbortController().signal;
const BLOCKS = 200;
const idOf = (number: number): string => number.toString(16).padStart(32, "0");

/** Blocks that have ended, the oldest of which are refused, or broken for the store. */
async function sweeps(refused: number, how: "refused" | "broken") {
  const clock = new ManualClock();
  const blocks = new ChunkRows();
  for (let number = 0; number < BLOCKS; number++) {
    await blocks.add({ id: idOf(number), rootId: "r", epoch: number, sinceMs: 0 });
    blocks.endEpoch(number, clock.wallMs() + number);
  }
  clock.advance(FIRST_SWEEP_AFTER_MS + BLOCKS + 1);
  const asked: string[] = [];
  const deleteMany = async (keys: readonly string[]): Promise<Map<string, string>> => {
    const [first = ""] = keys;
    const id = first.slice(-34, -2);
    asked.push(id);
    if (Number.parseInt(id, 16) >= refused) return new Map();
    if (how === "broken") throw new Error("an answer that is no answer");
    return new Map([[first, "AccessDenied"]]);
  };
  const deps = {
    requests: { deleteMany } as unknown as RemovalDeps["requests"],
    marker: { require: async () => undefined } as unknown as RemovalDeps["marker"],
    prefix: "",
    incarnation: "one",
    clock,
    logger: silentLogger,
    recoveryWindowMs: RECOVERY_WINDOW_MS,
    blocks,
    places: new Map(),
  };
  /** How many blocks one pass asks for, and how many wait for their first sweep afterwards. */
  const pass = async (): Promise<{ asked: number; left: number }> => {
    asked.length = 0;
    await sweepBlocks(deps, NEVER).catch(() => undefined);
    const beforeMs = Number.MAX_SAFE_INTEGER;
    const left = await blocks.ended({ beforeMs, isSweptOnce: false, limit: BLOCKS });
    return { asked: asked.length, left: left.length };
  };
  return pass;
}

test("a pass ends at many refusals, and the next goes on behind them before it begins anew", async () => {
  const pass = await sweeps(150, "refused");
  assert.deepEqual(await pass(), { asked: 64, left: 200 });
  assert.deepEqual(await pass(), { asked: 64, left: 200 });
  assert.deepEqual(await pass(), { asked: 72, left: 150 });
  assert.deepEqual(await pass(), { asked: 64, left: 150 });
});

test("few that are refused end no pass", async () => {
  const pass = await sweeps(10, "refused");
  assert.deepEqual(await pass(), { asked: 200, left: 10 });
});

test("a block with which a pass fails is passed over by the next one", async () => {
  const pass = await sweeps(1, "broken");
  assert.deepEqual(await pass(), { asked: 1, left: 200 });
  assert.deepEqual(await pass(), { asked: 199, left: 1 });
  assert.deepEqual(await pass(), { asked: 1, left: 1 });
});
