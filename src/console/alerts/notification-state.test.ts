// When a key is raised, eased and over: both sides of D11's limits, and a model on random sequences.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ALERT_TYPES, type AlertType } from "#wire/webapi/alert.ts";
import {
  HAPPENING,
  NOTIFICATION_RULES,
  type NotificationRule,
  type Sustained,
} from "./notification-rules.ts";
import {
  afterChange,
  afterReading,
  afterTime,
  CALM,
  FLAP_WINDOW_MS,
  type Flaps,
  isCalm,
  isWorse,
  type NotificationLevel,
  type Reading,
  STEADY,
  type Watch,
} from "./notification-state.ts";

/** Readings 5 s apart; returns the level after each. */
function levels(type: AlertType, readings: readonly Reading[], everyMs = 5_000): NotificationLevel[] {
  let watch: Watch = CALM;
  return readings.map((reading, at) => {
    watch = afterReading(watch, reading, NOTIFICATION_RULES[type], {
      steadyMs: at * everyMs,
      mayRaise: true,
    });
    return watch.level;
  });
}

const times = (count: number, reading: Reading): Reading[] => Array.from({ length: count }, () => reading);
const grade = (value: number, warning: number, critical: number): Reading => ({
  level: value > critical ? "critical" : value > warning ? "warning" : "clear",
  value,
});
const disk = (value: number): Reading => grade(value, 80, 95);
const heat = (value: number): Reading => grade(value, 65, 85);
const errors = (value: number): Reading => grade(value, 5, 20);

test("a disk is told of at the second poll above 80 %, not at the first (D11)", () => {
  assert.deepEqual(levels("storage_warning", [disk(81), disk(81)]), ["none", "warning"]);
  assert.deepEqual(levels("storage_warning", [disk(81), disk(80), disk(81)]), ["none", "none", "none"]);
  assert.deepEqual(levels("storage_warning", [disk(96), disk(96)]), ["none", "critical"]);
  assert.deepEqual(levels("storage_warning", [disk(81), disk(96), disk(96)]), [
    "none",
    "warning",
    "critical",
  ]);
});

test("a disk counts as better below 78 and 93 % for 60 s, not at them and not before (D11)", () => {
  const full = [disk(81), disk(81)];
  assert.equal(levels("storage_warning", [...full, ...times(40, disk(78))]).at(-1), "warning");
  assert.deepEqual(levels("storage_warning", [...full, ...times(13, disk(77.99))]).slice(-2), [
    "warning",
    "none",
  ]);
  const fuller = [disk(96), disk(96)];
  assert.equal(levels("storage_warning", [...fuller, ...times(40, disk(93))]).at(-1), "critical");
  assert.deepEqual(levels("storage_warning", [...fuller, ...times(13, disk(92.99))]).slice(-2), [
    "critical",
    "warning",
  ]);
  // One reading above the clear level restarts the 60 s.
  const interrupted = [...full, ...times(12, disk(70)), disk(79), ...times(12, disk(70))];
  assert.equal(levels("storage_warning", interrupted).at(-1), "warning");
});

test("heat is told of after 30 s above 65 °C and 10 s above 85 °C, and over below 62 and 80 °C for 60 s (D11)", () => {
  assert.deepEqual(levels("temp_warning", times(7, heat(66))).slice(-2), ["none", "warning"]);
  assert.deepEqual(levels("temp_warning", times(3, heat(86))), ["none", "none", "critical"]);
  const hot = times(3, heat(86));
  assert.equal(levels("temp_warning", [...hot, ...times(30, heat(80))]).at(-1), "critical");
  assert.deepEqual(levels("temp_warning", [...hot, ...times(13, heat(79))]).slice(-2), [
    "critical",
    "warning",
  ]);
  assert.deepEqual(levels("temp_warning", [...hot, ...times(13, heat(61.9))]).slice(-2), [
    "critical",
    "none",
  ]);
});

test("errors are told of at once, and over below 4 and 15 % for 120 s (D11)", () => {
  assert.deepEqual(levels("error_spike", [errors(6)]), ["warning"]);
  assert.deepEqual(levels("error_spike", [errors(21)]), ["critical"]);
  assert.deepEqual(levels("error_spike", [errors(6), ...times(25, errors(3.9))]).slice(-2), [
    "warning",
    "none",
  ]);
  assert.equal(levels("error_spike", [errors(6), ...times(60, errors(4))]).at(-1), "warning");
  assert.equal(levels("error_spike", [errors(21), ...times(60, errors(15))]).at(-1), "critical");
});

test("a quota is told of at once, and over below 95 % for ten minutes, not at 95 % and not before (D11, T1)", () => {
  const quota = (value: number): Reading => ({
    level: value >= 100 ? "critical" : value > 95 ? "warning" : "clear",
    value,
  });
  assert.deepEqual(levels("quota_exceeded", [quota(95), quota(95.01)]), ["none", "warning"]);
  assert.equal(levels("quota_exceeded", [quota(96), ...times(200, quota(95))]).at(-1), "warning");
  const below = times(121, quota(94.99));
  assert.deepEqual(levels("quota_exceeded", [quota(96), ...below]).slice(-2), ["warning", "none"]);
  // Between 95 and 100 % a full quota keeps its level.
  assert.equal(levels("quota_exceeded", [quota(100), ...times(200, quota(99))]).at(-1), "critical");
  assert.deepEqual(levels("quota_exceeded", [quota(100), ...below]).slice(-2), ["critical", "none"]);
});

test("a node is told of when it has been offline for 30 s, and over after two good polls (D11)", () => {
  const [gone, here]: Reading[] = [{ level: "critical" }, { level: "clear" }];
  if (gone === undefined || here === undefined) throw new TypeError("two readings");
  assert.deepEqual(levels("node_offline", times(7, gone)).slice(-2), ["none", "critical"]);
  assert.deepEqual(levels("node_offline", [...times(7, gone), here, gone, here, here]).slice(-4), [
    "critical",
    "critical",
    "critical",
    "none",
  ]);
});

test("what happens and does not last is over ten minutes after it happened last (D11)", () => {
  let watch: Watch = CALM;
  const read = (seconds: number, level: "warning" | "clear"): NotificationLevel => {
    watch = afterReading(watch, { level }, HAPPENING, { steadyMs: seconds * 1_000, mayRaise: true });
    return watch.level;
  };
  assert.equal(read(0, "warning"), "warning");
  assert.equal(read(5, "clear"), "warning");
  assert.equal(read(300, "warning"), "warning");
  assert.equal(read(305, "clear"), "warning");
  assert.equal(read(904, "clear"), "warning");
  assert.equal(read(905, "clear"), "none");
});

test("nothing becomes worse while it may not be raised, and the time counts all the same", () => {
  const rule = NOTIFICATION_RULES.storage_warning;
  let watch = afterReading(CALM, disk(99), rule, { steadyMs: 0, mayRaise: false });
  watch = afterReading(watch, disk(99), rule, { steadyMs: 5_000, mayRaise: false });
  assert.equal(watch.level, "none");
  watch = afterReading(watch, disk(99), rule, { steadyMs: 10_000, mayRaise: true });
  assert.equal(watch.level, "critical");
});

const sequence = fc.array(
  fc.record({
    gapMs: fc.constantFrom(1_000, 5_000, 5_000, 5_000, 10_000, 60_000, 700_000),
    value: fc.oneof(
      fc.double({ min: 0, max: 110, noNaN: true }),
      fc.constantFrom(4, 5, 15, 20, 62, 65, 78, 80, 85, 93, 95, 100),
    ),
    hasValue: fc.boolean(),
  }),
  { maxLength: 60 },
);

const THRESHOLDS: Partial<Record<AlertType, readonly [number, number]>> = {
  storage_warning: [80, 95],
  temp_warning: [65, 85],
  error_spike: [5, 20],
  quota_exceeded: [95, 99.999],
};

/** A literal model of the rule: at every reading it looks back over all of them. */
function modelLevels(
  rule: NotificationRule,
  seen: readonly { readonly atMs: number; readonly reading: Reading }[],
): NotificationLevel[] {
  const result: NotificationLevel[] = [];
  for (let now = 0; now < seen.length; now++) {
    const holds = (wanted: Sustained, is: (reading: Reading) => boolean): boolean => {
      const recent = seen.slice(0, now + 1).toReversed();
      const end = recent.findIndex(({ reading }) => !is(reading));
      const stretch = end === -1 ? recent : recent.slice(0, end);
      const [first, last] = [stretch.at(-1), stretch[0]];
      if (first === undefined || last === undefined) return false;
      return stretch.length >= wanted.readings && last.atMs - first.atMs >= wanted.forMs;
    };
    const below = (reading: Reading, of: "warning" | "critical"): boolean => {
      if (reading.level === "critical" || (of === "warning" && reading.level === "warning")) return false;
      return (
        rule.clearBelow === undefined || reading.value === undefined || reading.value < rule.clearBelow[of]
      );
    };
    const before = result.at(-1) ?? "none";
    if (before !== "critical" && holds(rule.raise.critical, ({ level }) => level === "critical")) {
      result.push("critical");
    } else if (before === "none") {
      const isRaised = holds(rule.raise.warning, ({ level }) => level === "warning" || level === "critical");
      result.push(isRaised ? "warning" : "none");
    } else if (holds(rule.clear, (reading) => below(reading, "warning"))) result.push("none");
    else if (before === "critical" && holds(rule.clear, (reading) => below(reading, "critical"))) {
      result.push("warning");
    } else result.push(before);
  }
  return result;
}

test("any sequence of readings gives the levels of a model that looks back over all of them", () => {
  fc.assert(
    fc.property(fc.constantFrom(...ALERT_TYPES), sequence, (type, steps) => {
      const rule = NOTIFICATION_RULES[type];
      const [warning, critical] = THRESHOLDS[type] ?? [50, 90];
      let atMs = 0;
      const seen = steps.map(({ gapMs, value, hasValue }) => {
        atMs += gapMs;
        const { level } = grade(value, warning, critical);
        return { atMs, reading: hasValue ? { level, value } : { level } };
      });
      let watch: Watch = CALM;
      const actual = seen.map(({ atMs: steadyMs, reading }) => {
        watch = afterReading(watch, reading, rule, { steadyMs, mayRaise: true });
        return watch.level;
      });
      assert.deepEqual(actual, modelLevels(rule, seen));
    }),
    { numRuns: 1_500 },
  );
});

test("the fourth raise within 30 minutes begins a hold; three, or four over a longer time, do not (D11)", () => {
  const after = (seconds: readonly number[]): Flaps =>
    seconds.reduce<Flaps>((flaps, at) => afterChange(flaps, true, at * 1_000), STEADY);
  assert.equal(after([0, 60, 120]).unstableMs, undefined);
  assert.equal(after([0, 60, 120, 1_799]).unstableMs, 1_799_000);
  assert.equal(after([0, 60, 120, 1_800]).unstableMs, undefined);
});

test("a hold ends 30 minutes after the last change, and raises count from nothing again (D11)", () => {
  let flaps: Flaps = { raisesMs: [], unstableMs: 0 };
  flaps = afterChange(flaps, false, 600_000);
  assert.equal(afterTime(flaps, 600_000 + FLAP_WINDOW_MS - 1).unstableMs, 600_000);
  assert.equal(afterTime(flaps, 600_000 + FLAP_WINDOW_MS), STEADY);
});

test("a key is calm when it has no level and none begins; of two levels the higher is the worse one", () => {
  assert.equal(isCalm(CALM), true);
  assert.equal(isCalm({ ...CALM, level: "warning" }), false);
  assert.equal(isCalm({ ...CALM, overWarning: { sinceMs: 0, count: 1 } }), false);
  const order: readonly NotificationLevel[] = ["none", "warning", "critical"];
  for (const [a, before] of order.entries())
    for (const [b, now] of order.entries()) assert.equal(isWorse(before, now), b > a, `${before} ${now}`);
});

test("without a level at which it clears, what keeps critical stays critical, and anything less is under it (D11)", () => {
  const read = (reading: Reading): NotificationLevel => {
    const rule: NotificationRule = {
      raise: NOTIFICATION_RULES.auth_mock.raise,
      clear: { readings: 1, forMs: 0 },
    };
    const before = afterReading(CALM, { level: "critical" }, rule, { steadyMs: 0, mayRaise: true });
    return afterReading(before, reading, rule, { steadyMs: 5_000, mayRaise: true }).level;
  };
  assert.equal(read({ level: "warning" }), "warning");
  assert.equal(read({ level: "clear" }), "none");
});

test("only what becomes worse is counted towards a hold (D11)", () => {
  let flaps: Flaps = STEADY;
  for (let at = 0; at < 20; at++) flaps = afterChange(flaps, false, at);
  assert.equal(flaps, STEADY);
});

test("a raise is forgotten exactly 30 minutes after it, each by itself (D11)", () => {
  const two = afterChange(afterChange(STEADY, true, 0), true, 1_000);
  assert.equal(afterTime(two, FLAP_WINDOW_MS - 1), two);
  assert.deepEqual(afterTime(two, FLAP_WINDOW_MS).raisesMs, [1_000]);
  assert.equal(afterTime(two, FLAP_WINDOW_MS + 1_000), STEADY);
  assert.equal(afterTime(STEADY, FLAP_WINDOW_MS), STEADY);
});
