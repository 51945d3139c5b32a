// Tests both sides of the gate's limits: health, heartbeat, failed operations, restart (spec 4.7, D7).
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { type GateRequest, type GateResult, type NodeLook, passGate } from "./rollout-gate.ts";

interface Scene {
  readonly overrides?: Partial<GateRequest>;
  readonly gates?: Partial<GateRequest["gates"]>;
  /** The console's view of the node, by seconds after the restart; undefined: no FileServer. */
  readonly look?: (second: number) => Partial<NodeLook> | undefined;
  readonly isHealthy?: (second: number) => boolean;
}

const RESTARTED_MS = 100_000;

/**
 * A gate on a node that restarted at 100 s and is polled each second without failures, except as the scene
 * says.
 */
async function gate(scene: Scene): Promise<{ result: GateResult | undefined; seconds: number }> {
  const clock = new ManualClock();
  clock.advance(RESTARTED_MS - clock.steadyMs());
  const second = (): number => Math.round((clock.steadyMs() - RESTARTED_MS) / 1_000);
  const look = (): NodeLook | undefined => {
    const said = (scene.look ?? (() => ({})))(second());
    if (said === undefined) return undefined;
    return {
      answeredMs: clock.steadyMs(),
      startedUnix: 2_000,
      errors: 0,
      errorsPerSecond: 0,
      commit: null,
      ...said,
    };
  };
  const done = passGate(
    { clock, pulse: { look, isHealthy: async () => (scene.isHealthy ?? (() => true))(second()) } },
    {
      nodeId: "n1",
      gates: { health_seconds: 10, observe_seconds: 20, errors_per_second_above: 0.5, ...scene.gates },
      restartBeganMs: RESTARTED_MS,
      restartedMs: RESTARTED_MS,
      restartsFileServer: true,
      before: { answeredMs: 90_000, startedUnix: 1_000, errors: 500, errorsPerSecond: 0, commit: null },
      errorsPerSecondBefore: 0,
      signal: new AbortController().signal,
      ...scene.overrides,
    },
  );
  const end = { isReached: false };
  void done.finally(() => {
    end.isReached = true;
  });
  while (!end.isReached) {
    for (let turns = 0; turns < 20; turns++) await Promise.resolve();
    if (!end.isReached) clock.advance(1_000);
  }
  return { result: await done, seconds: second() };
}

test("a node that is well is let pass when it was watched for its time", async () => {
  const { result, seconds } = await gate({ look: () => ({ commit: "c0ffee" }) });
  assert.deepEqual(result, { errorsPerSecond: 0, commit: "c0ffee" });
  assert.ok(seconds >= 20, String(seconds));
});

test("health has its time and no more", async () => {
  const { result } = await gate({ isHealthy: (second) => second >= 10 });
  assert.equal(result?.message, undefined);
  const late = await gate({ isHealthy: (second) => second >= 11 });
  assert.equal(
    late.result?.message,
    "n1 was not well within 10 seconds of its restart: /health does not answer",
  );
  assert.equal(late.seconds, 10);
});

test("a heartbeat must have come since the restart, from a start that is new", async () => {
  const stale = await gate({ look: () => ({ answeredMs: RESTARTED_MS }) });
  assert.match(stale.result?.message ?? "", /no poll of it has been answered since/);
  const old = await gate({ look: () => ({ startedUnix: 1_000 }) });
  assert.match(old.result?.message ?? "", /its FileServer still runs since before/);
  const other = await gate({
    look: () => ({ startedUnix: 1_000 }),
    overrides: { restartsFileServer: false },
  });
  assert.equal(other.result?.message, undefined);
});

test("a node whose FileServer nobody knows is let pass only when no FileServer was restarted", async () => {
  const missing = await gate({ look: () => undefined });
  assert.match(missing.result?.message ?? "", /no FileServer of it is known here/);
  const none = await gate({
    look: () => undefined,
    overrides: { restartsFileServer: false, before: undefined },
  });
  assert.deepEqual(none.result, {});
});

test("failed operations a second may be above those before by the margin, and not by more", async () => {
  const failing = (perSecond: number) => (second: number) => ({ errors: Math.floor(perSecond * second) });
  assert.equal((await gate({ look: failing(0.4) })).result?.message, undefined);
  const worse = await gate({ look: failing(2) });
  assert.match(
    worse.result?.message ?? "",
    /^n1 fails \S+ operations a second since its restart; before it were 0/,
  );
  assert.ok(worse.seconds < 20, "too many for the whole time end it at once");
  assert.equal(
    (await gate({ look: failing(2), overrides: { errorsPerSecondBefore: 1.8 } })).result?.message,
    undefined,
  );
  assert.equal(
    (await gate({ look: failing(2), overrides: { errorsPerSecondBefore: null } })).result?.message,
    worse.result?.message,
  );
});

test("without a restart of the FileServer its counts go on from before", async () => {
  const overrides = { restartsFileServer: false };
  const same = await gate({ overrides, look: () => ({ startedUnix: 1_000, errors: 500 }) });
  assert.deepEqual([same.result?.message, same.result?.errorsPerSecond], [undefined, 0]);
  const more = await gate({ overrides, look: () => ({ startedUnix: 1_000, errors: 700 }) });
  assert.match(more.result?.message ?? "", /operations a second/);
});

test("a node that starts again, falls silent, gets ill or tells nothing while it is watched is not let pass", async () => {
  const message = async (scene: Scene): Promise<string> => (await gate(scene)).result?.message ?? "passed";
  assert.match(
    await message({ look: (second) => ({ startedUnix: second < 8 ? 2_000 : 2_008 }) }),
    /started again by itself/,
  );
  const silent = (second: number): Partial<NodeLook> => ({
    answeredMs: RESTARTED_MS + Math.min(second, 5) * 1_000,
  });
  assert.match(await message({ look: silent }), /stopped to answer polls/);
  assert.match(await message({ isHealthy: (second) => second < 10 }), /does not answer \/health any more/);
  const late = await gate({ isHealthy: (second) => second < 10 || second > 25 });
  assert.equal(late.result?.message, undefined, "one late answer ends no rollout");
  assert.match(await message({ look: () => ({ errors: null }) }), /does not tell/);
});

test("whoever ends the rollout ends the gate", async () => {
  const abort = new AbortController();
  const { result } = await gate({
    overrides: { signal: abort.signal },
    isHealthy: (second) => {
      if (second === 3) abort.abort();
      return false;
    },
  });
  assert.equal(result, undefined);
});
