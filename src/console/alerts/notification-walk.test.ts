// Values that move around thresholds for hours cause no flapping, and a model agrees (decision D11).
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Condition } from "./condition.ts";
import { NOTIFICATION_RULES } from "./notification-rules.ts";
import { diskCondition, nodeCondition, ServiceRun } from "./notification-service.fixture.ts";
import {
  afterChange,
  afterReading,
  afterTime,
  CALM,
  FLAP_RAISES_MAX,
  isWorse,
  STEADY,
} from "./notification-state.ts";

const QUIET_START = 60;
/** A run after its start-up hold, with every disk at 50 %. */
function started(): ServiceRun {
  const run = new ServiceRun();
  run.run(QUIET_START, () => [diskCondition("n1", 50)]);
  return run;
}

/** A random walk: steps of at most stepMax, kept between low and high; one value for each 5 s. */
function walk(low: number, high: number, stepMax: number, count: number): fc.Arbitrary<number[]> {
  return fc
    .tuple(
      fc.double({ min: low, max: high, noNaN: true }),
      fc.array(fc.double({ min: -stepMax, max: stepMax, noNaN: true }), {
        minLength: count,
        maxLength: count,
      }),
    )
    .map(([start, steps]) => {
      let value = start;
      return steps.map((step) => {
        value = Math.min(high, Math.max(low, value + step));
        return value;
      });
    });
}

const graded = (
  type: "storage_warning" | "temp_warning" | "error_spike" | "quota_exceeded",
  value: number,
): Condition => {
  const [warning, critical] = {
    storage_warning: [80, 95] as const,
    temp_warning: [65, 85] as const,
    error_spike: [5, 20] as const,
    quota_exceeded: [95, 100] as const,
  }[type];
  const level =
    value > critical ? "critical" : value > warning ? "warning" : value === warning ? "hold" : "clear";
  return nodeCondition(type, "n1", level, value);
};

for (const [type, low, high] of [
  ["storage_warning", 78, 95],
  ["temp_warning", 62, 85],
  ["error_spike", 4, 20],
  ["quota_exceeded", 90, 100],
] as const) {
  test(`over ten minutes of a value that wanders across its threshold ${type} is told once at most (D11, show 1)`, () => {
    fc.assert(
      fc.property(walk(low, high, 3, 120), (values) => {
        const run = started();
        run.run(600, (second) => [graded(type, values[(second - QUIET_START) / 5] ?? low)]);
        // The time for which news of the last second wait for others.
        run.run(32, () => [graded(type, values.at(-1) ?? low)]);
        const told = run.told();
        assert.ok(told.length <= 1, told.join("\n"));
        assert.ok(told.every((line) => line.includes("raised")));
      }),
      { numRuns: 60 },
    );
  });
}

/**
 * The expected notifications of a single key, second by second: an independent implementation of the rules.
 */
function modelNotifications(conditions: readonly (Condition | undefined)[], seconds: number): string[] {
  const told: string[] = [];
  let [watch, flaps] = [CALM, STEADY];
  let known: { level: string; isFlapping: boolean } | undefined;
  let newsSince: number | undefined;
  for (let second = 0; second < seconds; second++) {
    const steadyMs = second * 1_000;
    const condition = second % 5 === 0 ? conditions[second / 5] : undefined;
    if (condition !== undefined && condition.level !== "hold" && condition.level !== "unknown") {
      const { level, value } = condition;
      const before = watch.level;
      watch = afterReading(watch, { level, value }, NOTIFICATION_RULES[condition.type], {
        steadyMs,
        mayRaise: second >= 30,
      });
      if (watch.level !== before) flaps = afterChange(flaps, isWorse(before, watch.level), steadyMs);
    }
    flaps = afterTime(flaps, steadyMs);
    const isHeld = flaps.unstableMs !== undefined;
    if (known !== undefined && !isHeld) known.isFlapping = false;
    const news = isHeld
      ? known?.isFlapping === true
        ? undefined
        : "flapping"
      : watch.level === "none"
        ? known && "over"
        : known === undefined
          ? "raised"
          : known.level === "warning" && watch.level === "critical"
            ? "worse"
            : undefined;
    if (second < 30 || news === undefined) newsSince = undefined;
    else if ((newsSince ??= second) + 30 <= second) {
      told.push(`${second} ${news}`);
      newsSince = undefined;
      if (news === "over") known = undefined;
      else {
        const isCritical = watch.level === "critical" || known?.level === "critical";
        known = { level: isCritical ? "critical" : "warning", isFlapping: news === "flapping" };
      }
    }
  }
  return told;
}

test("any walk over hours gives the notices of the model: in turns, and never more than three raises in 30 min", () => {
  const scene = fc.record({
    values: fc.oneof(walk(60, 100, 12, 1_000), walk(70, 90, 30, 1_000)),
    gaps: fc.array(fc.nat(999), { maxLength: 60 }),
  });
  fc.assert(
    fc.property(scene, ({ values, gaps }) => {
      const conditions = values.map((value, at) =>
        gaps.includes(at) ? undefined : graded("storage_warning", value),
      );
      const run = new ServiceRun();
      run.run(5_000, (second) => [conditions[second / 5] ?? []].flat());
      const told = run.told().map((line) => line.split(" ").slice(0, 2).join(" "));
      assert.deepEqual(told, modelNotifications(conditions, 5_000));
      let isOpen = false;
      const raises: number[] = [];
      for (const line of told) {
        const [second = "", reason = ""] = line.split(" ");
        if (reason === "raised") assert.equal(isOpen, false, "raised twice");
        if (reason === "over" || reason === "worse") assert.equal(isOpen, true, `${reason} without a raise`);
        if (reason === "raised" || reason === "worse") raises.push(Number(second));
        isOpen = reason !== "over";
      }
      for (const first of raises) {
        const within = raises.filter((second) => second >= first && second < first + 1_800 - 35);
        assert.ok(within.length <= FLAP_RAISES_MAX, `${within.length} raises in 30 min`);
      }
    }),
    { numRuns: 60 },
  );
});
