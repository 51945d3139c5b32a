// Tests the state machine against a model of the specification's tables, for random sequences (M-07).
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ALERT_KINDS, RESTART_OVER_MS } from "./alert-kinds.ts";
import {
  type AlertEvent,
  AlertStateMachine,
  USER_ALERTS_MAX,
  USER_ALERTS_PER_NODE_MAX,
} from "./alert-state-machine.ts";
import type { Condition, Moment, Occurrence } from "./condition.ts";
import { gradeOf } from "./node-rules.ts";
import { quotaLevel } from "./quota-rule.ts";
import { ALERT_KEPT_MS, ALERTS_RESOLVED_KEPT } from "./resolved-alerts.ts";

const START: Moment = { wallMs: 1_790_000_000_000, steadyMs: 1_000 };
const after = (ms: number, from = START): Moment => ({
  wallMs: from.wallMs + ms,
  steadyMs: from.steadyMs + ms,
});
const STORAGE = {
  key: "storage_warning:n1",
  type: "storage_warning",
  nodeId: "n1",
  nodeName: "fs-1",
} as const;

const storage = (percent: number | null): Condition => ({
  ...STORAGE,
  ...gradeOf(percent, { warning: 80, critical: 95 }),
});
const quota = (percent: number): Condition => ({
  key: "quota_exceeded:bob@example.com",
  type: "quota_exceeded",
  username: "bob@example.com",
  nodeId: "n1",
  value: percent,
  level: quotaLevel(BigInt(Math.round(percent * 100)), 10_000n),
});
const kinds = (events: readonly AlertEvent[]): string[] =>
  events.map(({ kind, alert }) => `${kind} ${alert.severity}`);

/** A literal model of spec 3.1, which shares no code with the state machine. */
class Model {
  state: "monitoring" | "warning" | "critical" = "monitoring";
  /**
   * The severity at which an operator resolved, until the value has once been below the warning threshold.
   */
  handled: "warning" | "critical" | undefined;
  readonly told: string[] = [];

  storage(value: number | null): void {
    if (value === null) return;
    if (value > 95) this.#rise("critical");
    else if (value > 80) {
      // Exactly at 95 it is neither above nor below.
      if (this.state === "critical" && value < 95) this.#say("warning", "changed");
      else if (this.state === "monitoring") this.#rise("warning");
    } else if (value < 80) this.#fall();
  }

  quota(value: number): void {
    if (value >= 100) this.#rise("critical");
    else if (value > 95) {
      if (this.state === "critical") this.#say("warning", "changed");
      else if (this.state === "monitoring") this.#rise("warning");
    } else if (value < 95) this.#fall();
  }

  resolve(): void {
    if (this.state === "monitoring") return;
    this.handled = this.state;
    this.told.push(`resolved ${this.state}`);
    this.state = "monitoring";
  }

  #rise(to: "warning" | "critical"): void {
    if (this.state === to) return;
    if (this.state === "critical") return;
    if (this.state === "warning") return this.#say(to, "changed");
    if (this.handled === "critical" || this.handled === to) return;
    this.handled = undefined;
    this.#say(to, "raised");
  }

  #fall(): void {
    const wasHandled = this.handled !== undefined;
    this.handled = undefined;
    if (this.state !== "monitoring") this.told.push(`resolved ${this.state}`, "recorded info");
    else if (wasHandled) this.told.push("recorded info");
    this.state = "monitoring";
  }

  #say(to: "warning" | "critical", kind: string): void {
    this.state = to;
    this.told.push(`${kind} ${to}`);
  }
}

for (const [name, values, toCondition] of [
  ["storage", [null, 0, 79.99, 80, 80.01, 90, 94.99, 95, 95.01, 100], storage],
  ["quota", [0, 94.99, 95, 95.01, 99.99, 100, 100.01, 250], (value: number | null) => quota(value ?? 0)],
] as const) {
  test(`${name}: for every sequence of 200 samples and resolutions the machine tells what the table of spec 3.1 says (M-07)`, () => {
    const step = fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom<number | null>(...values) },
      { weight: 1, arbitrary: fc.constant("resolve" as const) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const [machine, model, told]: [AlertStateMachine, Model, string[]] = [
          new AlertStateMachine(),
          new Model(),
          [],
        ];
        let at = START;
        for (const sample of steps) {
          at = after(5_000, at);
          if (sample === "resolve") {
            model.resolve();
            told.push(
              ...kinds(
                machine.resolve(
                  [...machine.openAlerts()].map(({ id }) => id),
                  at,
                ).events,
              ),
            );
          } else {
            if (name === "storage") model.storage(sample);
            else model.quota(sample ?? 0);
            told.push(...kinds(machine.apply([toCondition(sample)], at)));
          }
          const open = [...machine.openAlerts()];
          assert.ok(open.length <= 1, "one alert per key");
          assert.equal(open[0]?.severity ?? "monitoring", model.state);
        }
        assert.deepEqual(told, model.told);
      }),
      { numRuns: 300 },
    );
  });
}

test("a record keeps its id and its time through all levels; the next one is new and counts on (spec 3.1, D11)", () => {
  const machine = new AlertStateMachine();
  const [raised] = machine.apply([storage(81)], START);
  const [critical] = machine.apply([storage(96)], after(5_000));
  const [warning] = machine.apply([storage(82)], after(10_000));
  const [resolved, recovery] = machine.apply([storage(79)], after(15_000));
  const ids = [raised, critical, warning, resolved].map((event) => event?.alert.id);
  assert.equal(new Set(ids).size, 1);
  assert.deepEqual(
    [critical?.alert.timestamp, critical?.alert.threshold, warning?.alert.threshold],
    [1_790_000_000, 95, 80],
  );
  assert.deepEqual(
    [resolved?.alert.resolved, resolved?.alert.resolved_at, resolved?.alert.resolved_by],
    [true, 1_790_000_015, "auto"],
  );
  assert.deepEqual(
    [recovery?.alert.key, recovery?.alert.type, recovery?.alert.severity, recovery?.alert.resolved],
    ["storage_warning:n1", "storage_warning", "info", true],
  );
  const [again] = machine.apply([storage(85)], after(20_000));
  assert.notEqual(again?.alert.id, raised?.alert.id);
  assert.equal(again?.alert.raised_count, 2);
});

test("a value that moves within its level is in the record, and no event (spec 3.1)", () => {
  const machine = new AlertStateMachine();
  machine.apply([storage(81)], START);
  assert.deepEqual(machine.apply([storage(94.2)], after(5_000)), []);
  assert.equal(machine.openAlert(STORAGE.key)?.value, 94.2);
});

test("a node that answers again leaves an info record under node_online (spec 3.3, D24)", () => {
  const machine = new AlertStateMachine();
  const about = { key: "node_offline:n1", type: "node_offline", nodeId: "n1", nodeName: "fs-1" } as const;
  assert.deepEqual(kinds(machine.apply([{ ...about, level: "critical" }], START)), ["raised critical"]);
  assert.deepEqual(machine.apply([{ ...about, level: "unknown" }], after(5_000)), []);
  const [resolved, online] = machine.apply([{ ...about, level: "clear" }], after(10_000));
  assert.equal(resolved?.alert.type, "node_offline");
  assert.deepEqual(
    [online?.kind, online?.alert.key, online?.alert.type, online?.alert.severity],
    ["recorded", "node_online:n1", "node_online", "info"],
  );
});

const RESTART: Occurrence = {
  key: "service_restart:n1",
  type: "service_restart",
  level: "warning",
  nodeId: "n1",
  nodeName: "fs-1",
};

test("a hundred restarts are one alert that counts them, over when ten minutes passed without another (M-06, D11)", () => {
  const machine = new AlertStateMachine();
  for (let i = 0; i < 100; i++) machine.happened(RESTART, after(i * 5_000));
  assert.equal([...machine.openAlerts()].length, 1);
  assert.equal(machine.openAlert(RESTART.key)?.raisedCount, 100);
  const last = 99 * 5_000;
  assert.deepEqual(machine.expire(after(last + RESTART_OVER_MS - 1)), []);
  assert.deepEqual(kinds(machine.expire(after(last + RESTART_OVER_MS))), [
    "resolved warning",
    "recorded info",
  ]);
});

test("what happens again after an operator resolved it is raised again (D11)", () => {
  const machine = new AlertStateMachine();
  const [raised] = machine.happened(RESTART, START);
  machine.resolve([raised?.alert.id ?? ""], after(1_000));
  assert.deepEqual(kinds(machine.happened(RESTART, after(2_000))), ["raised warning"]);
});

test("failed sign-ins are over a day after the last of them (W-03)", () => {
  const machine = new AlertStateMachine();
  const failures = { key: "login_failures:console", type: "login_failures", level: "warning" } as const;
  machine.happened(failures, START);
  machine.happened(failures, after(3_600_000));
  const dayMs = 24 * 3_600_000;
  assert.deepEqual(machine.expire(after(3_600_000 + dayMs - 1)), []);
  assert.deepEqual(kinds(machine.expire(after(3_600_000 + dayMs))), ["resolved warning"]);
});

test("an attempt that nobody resolves by rule stays open: a mock token, for an operator alone (spec 5.7)", () => {
  const machine = new AlertStateMachine();
  machine.happened({ key: "mock_token:n1", type: "mock_token", level: "critical", nodeId: "n1" }, START);
  assert.deepEqual(machine.expire(after(365 * 86_400_000)), []);
});

test("the built-in password's alert stays in force whatever an operator says, and ends with its condition (T10)", () => {
  const machine = new AlertStateMachine();
  const about = { key: "default_password", type: "default_password" } as const;
  const [raised] = machine.apply([{ ...about, level: "critical" }], START);
  const { resolution, events } = machine.resolve([raised?.alert.id ?? ""], after(1_000));
  assert.deepEqual([resolution.inForce, resolution.resolved, events], [[raised?.alert.id], [], []]);
  assert.deepEqual(kinds(machine.apply([{ ...about, level: "clear" }], after(2_000))), [
    "resolved critical",
    "recorded info",
  ]);
});

test("resolving twice says so, and unknown ids are left out (D11)", () => {
  const machine = new AlertStateMachine();
  const [raised] = machine.apply([storage(81)], START);
  const id = raised?.alert.id ?? "";
  assert.deepEqual(machine.resolve([id, id, "nobody"], START).resolution, {
    resolved: [id],
    alreadyResolved: [],
    inForce: [],
  });
  assert.deepEqual(machine.resolve([id], START).resolution.alreadyResolved, [id]);
});

test("whoever took on a warning has not taken on a critical alert; visitors see nothing of either (D11, W-09)", () => {
  const machine = new AlertStateMachine();
  const [raised] = machine.apply([storage(81)], START);
  const [acked] = machine.acknowledge(raised?.alert.id ?? "", "0123abcd", after(1_000));
  assert.deepEqual(
    [acked?.alert.acked_by, acked?.alert.acked_at, acked?.public],
    ["0123abcd", 1_790_000_001, undefined],
  );
  assert.deepEqual(machine.acknowledge(raised?.alert.id ?? "", "0123abcd", after(2_000)), []);
  const [critical] = machine.apply([storage(96)], after(5_000));
  assert.equal(critical?.alert.acked_by, undefined);
  assert.equal("acked_by" in (critical?.public ?? {}), false);
});

test("state goes through a restart: open, muted and counts (A-10)", () => {
  const machine = new AlertStateMachine();
  machine.apply([storage(81), quota(97)], START);
  machine.resolve([machine.openAlert(STORAGE.key)?.id ?? ""], after(1_000));
  const again = new AlertStateMachine(machine.state(), after(2_000));
  assert.deepEqual(again.apply([storage(82), quota(98)], after(3_000)), []);
  assert.deepEqual(kinds(again.apply([storage(96)], after(4_000))), ["raised critical"]);
  assert.equal(again.openAlert(STORAGE.key)?.raisedCount, 2);
});

test("a wall clock that jumps ages no resolved alert, neither while it runs nor by a start before it is set (C-01)", () => {
  const machine = new AlertStateMachine();
  machine.apply([storage(81)], START);
  machine.apply([storage(79)], after(1_000));
  const jumped = (days: number, steadyMs: number): Moment => ({
    wallMs: START.wallMs + days * 86_400_000,
    steadyMs,
  });
  machine.expire(jumped(10_000, 2_000));
  assert.equal([...machine.alerts()].length, 2);
  const again = new AlertStateMachine(machine.state(), jumped(-10_000, 5));
  again.expire(jumped(0, ALERT_KEPT_MS + 5));
  assert.equal([...again.alerts()].length, 2);
  again.expire(jumped(0, ALERT_KEPT_MS + 6));
  assert.equal([...again.alerts()].length, 0);
});

test("resolved alerts: the newest 1,000 that visitors may see, as many of the others, none beyond 30 days (D11)", () => {
  const machine = new AlertStateMachine();
  let at = START;
  for (let i = 0; i < ALERTS_RESOLVED_KEPT; i++) {
    at = after(5_000, at);
    machine.apply([storage(81)], at);
    machine.apply([storage(79)], at);
  }
  assert.equal([...machine.alerts()].length, ALERTS_RESOLVED_KEPT);
  machine.apply([quota(97)], at);
  machine.apply([quota(90)], at);
  assert.equal([...machine.alerts()].length, ALERTS_RESOLVED_KEPT + 2);
  machine.expire(after(ALERT_KEPT_MS, at));
  assert.ok([...machine.alerts()].length > 0, "exactly 30 days old is kept");
  machine.expire(after(ALERT_KEPT_MS + 1, at));
  assert.deepEqual([...machine.alerts()], []);
});

test("alerts about users are bounded for each node and in all, and room comes back (M-05)", () => {
  const machine = new AlertStateMachine();
  const users = (node: string, count: number): Condition[] =>
    Array.from({ length: count }, (_, i) => ({
      ...quota(99),
      key: `quota_exceeded:${node}-${i}@example.com`,
      username: `${node}-${i}@example.com`,
      nodeId: node,
    }));
  assert.equal(
    machine.apply(users("n0", USER_ALERTS_PER_NODE_MAX + 1), START).length,
    USER_ALERTS_PER_NODE_MAX,
  );
  assert.equal(machine.notRaised, 1);
  for (let i = 1; i <= 12; i++) machine.apply(users(`n${i}`, 900), START);
  assert.equal([...machine.openAlerts()].length, USER_ALERTS_MAX);
  machine.drop(["quota_exceeded:n0-0@example.com"], START);
  assert.equal(machine.apply(users("n12", 900), after(5_000)).length, 1);
});

test("ids are time-ordered, differ, and do not depend on what else there is (W-09)", () => {
  const [alone, among] = [new AlertStateMachine(), new AlertStateMachine()];
  among.apply([quota(99)], START);
  const [first] = alone.apply([storage(81)], after(5_000));
  const [second] = among.apply([storage(81)], after(5_000));
  assert.deepEqual(first?.public, second?.public);
  const [over, recovery] = alone.apply([storage(79)], after(10_000));
  assert.ok((recovery?.alert.id ?? "") > (over?.alert.id ?? ""));
});

test("what happens again worse is worse, once milder it stays; whoever took it on before has not taken on that (D11)", () => {
  const machine = new AlertStateMachine();
  const [raised] = machine.happened({ ...RESTART, count: 2 }, START);
  assert.deepEqual([raised?.kind, raised?.alert.raised_count], ["raised", 2]);
  machine.acknowledge(raised?.alert.id ?? "", "0123abcd", after(1_000));
  const [same] = machine.happened(RESTART, after(2_000));
  assert.deepEqual([same?.kind, same?.alert.raised_count, same?.alert.acked_by], ["changed", 3, "0123abcd"]);
  const [worse] = machine.happened({ ...RESTART, level: "critical" }, after(3_000));
  assert.deepEqual([worse?.alert.severity, worse?.alert.acked_by], ["critical", undefined]);
  const [milder] = machine.happened({ ...RESTART, count: 5 }, after(4_000));
  assert.deepEqual([milder?.alert.severity, milder?.alert.raised_count], ["critical", 9]);
});

test("a count never passes what the file can hold, whatever a node says (M-05)", () => {
  const machine = new AlertStateMachine();
  machine.happened({ ...RESTART, count: Number.MAX_SAFE_INTEGER - 1 }, START);
  const [next] = machine.happened({ ...RESTART, count: 5 }, after(1_000));
  assert.equal(next?.alert.raised_count, Number.MAX_SAFE_INTEGER);
});

test("a happening that was open before a restart is over as long after it was last seen as without one (A-10, D11)", () => {
  const machine = new AlertStateMachine();
  machine.happened(RESTART, START);
  const again = new AlertStateMachine(machine.state(), { wallMs: START.wallMs + 60_000, steadyMs: 5 });
  const steady = (steadyMs: number): Moment => ({ wallMs: START.wallMs + 60_000, steadyMs });
  assert.deepEqual(again.expire(steady(5 + RESTART_OVER_MS - 60_000 - 1)), []);
  assert.deepEqual(kinds(again.expire(steady(5 + RESTART_OVER_MS - 60_000))), [
    "resolved warning",
    "recorded info",
  ]);
  // A wall clock that went back does not make it younger than now.
  const jumped = new AlertStateMachine(machine.state(), { wallMs: START.wallMs - 60_000, steadyMs: 5 });
  assert.deepEqual(jumped.expire(steady(5 + RESTART_OVER_MS - 1)), []);
  assert.equal(jumped.expire(steady(5 + RESTART_OVER_MS)).length, 2);
});

function isStanding(machine: AlertStateMachine, key: string): boolean {
  return machine.openAlert(key) !== undefined || [...machine.mutedKeys()].some((muted) => muted.key === key);
}

test("a key stands while its alert is open or muted, and no longer once it is clear or its subject gone (D11)", () => {
  const machine = new AlertStateMachine();
  assert.equal(isStanding(machine, STORAGE.key), false);
  const [raised] = machine.apply([storage(81)], START);
  assert.deepEqual([isStanding(machine, STORAGE.key), [...machine.mutedKeys()]], [true, []]);
  machine.resolve([raised?.alert.id ?? ""], after(1_000));
  assert.equal(isStanding(machine, STORAGE.key), true);
  assert.deepEqual(
    [...machine.mutedKeys()],
    [{ key: STORAGE.key, type: "storage_warning", severity: "warning", nodeId: "n1" }],
  );
  assert.deepEqual(machine.drop([STORAGE.key, "nobody"], after(2_000)), []);
  assert.equal(isStanding(machine, STORAGE.key), false);
  machine.apply([storage(81)], after(3_000));
  const dropped = machine.drop([STORAGE.key], after(4_000));
  assert.deepEqual(kinds(dropped), ["resolved warning"], "nobody knows of a recovery");
  assert.equal(isStanding(machine, STORAGE.key), false);
});

test("what is muted about the console itself names no node", () => {
  const machine = new AlertStateMachine();
  const about = { key: "auth", type: "cert_expiring" } as const;
  const [raised] = machine.apply([{ ...about, level: "warning" }], START);
  machine.resolve([raised?.alert.id ?? ""], after(1_000));
  assert.deepEqual([...machine.mutedKeys()], [{ key: "auth", type: "cert_expiring", severity: "warning" }]);
});

test("only an open alert can be taken on, and by another operator anew (D11)", () => {
  const machine = new AlertStateMachine();
  const [raised] = machine.apply([storage(81)], START);
  const id = raised?.alert.id ?? "";
  assert.deepEqual(machine.acknowledge("nobody", "a", after(1_000)), []);
  assert.equal(machine.acknowledge(id, "a", after(1_000)).length, 1);
  assert.equal(machine.acknowledge(id, "b", after(2_000))[0]?.alert.acked_by, "b");
  machine.resolve([id], after(3_000));
  assert.deepEqual(machine.acknowledge(id, "c", after(4_000)), []);
});

test("each change of a record has the next revision, and fresher numbers alone have none (D11)", () => {
  const machine = new AlertStateMachine();
  const revision = (): number | undefined => [...machine.alerts()][0]?.revision;
  machine.apply([storage(81)], START);
  assert.equal(revision(), 1);
  machine.apply([storage(82)], after(5_000));
  assert.equal(revision(), 1);
  machine.apply([storage(96)], after(10_000));
  assert.equal(revision(), 2);
  machine.resolve([machine.openAlert(STORAGE.key)?.id ?? ""], after(15_000));
  assert.equal(revision(), 3);
});

test("a recovery is a record of its own, resolved from the start, and counts like its alert (spec 3.1 rule 2)", () => {
  const machine = new AlertStateMachine();
  for (let round = 1; round <= 3; round++) {
    machine.apply([storage(81)], after(round * 10_000));
    const [, recovery] = machine.apply([storage(79)], after(round * 10_000 + 5_000));
    assert.deepEqual([recovery?.alert.raised_count, recovery?.alert.resolved_by], [round, "auto"]);
    assert.equal(recovery?.alert.node_id, "n1");
    assert.equal(recovery?.alert.value, 79);
  }
  const about = { key: "node_offline:n1", type: "node_offline", nodeId: "n1", nodeName: "fs-1" } as const;
  for (let round = 1; round <= 2; round++) {
    machine.apply([{ ...about, level: "critical" }], after(round * 100_000));
    const [, online] = machine.apply([{ ...about, level: "clear" }], after(round * 100_000 + 5_000));
    assert.equal(online?.alert.raised_count, round);
  }
});

test("a count is forgotten with the last record that tells it, and begins again (D11)", () => {
  const machine = new AlertStateMachine();
  machine.happened(RESTART, START);
  machine.expire(after(RESTART_OVER_MS));
  machine.expire(after(RESTART_OVER_MS + ALERT_KEPT_MS));
  assert.ok([...machine.alerts()].length > 0);
  machine.expire(after(RESTART_OVER_MS + ALERT_KEPT_MS + 1));
  assert.deepEqual([...machine.alerts()], []);
  const [again] = machine.happened(RESTART, after(2 * ALERT_KEPT_MS));
  assert.equal(again?.alert.raised_count, 1);
});

test("a count stays while a later record tells it, however old the first ones are (D11)", () => {
  const machine = new AlertStateMachine();
  const halfMs = ALERT_KEPT_MS / 2;
  for (const round of [0, 1]) {
    machine.apply([storage(81)], after(round * halfMs));
    machine.apply([storage(79)], after(round * halfMs + 1_000));
  }
  machine.expire(after(ALERT_KEPT_MS + 1_001));
  assert.equal([...machine.alerts()].length, 2, "the first round is forgotten");
  const [again] = machine.apply([storage(81)], after(ALERT_KEPT_MS + 2_000));
  assert.equal(again?.alert.raised_count, 3);
});

test("an alert about a user that another node takes over is counted there (M-05)", () => {
  const machine = new AlertStateMachine();
  const moving = { ...quota(99), key: "quota_exceeded:ann", username: "ann" };
  machine.apply([{ ...moving, nodeId: "n1" }], START);
  machine.apply([{ ...moving, nodeId: "n2" }], after(5_000));
  const fill = (node: string, count: number): Condition[] =>
    Array.from({ length: count }, (_, i) => ({
      ...quota(99),
      key: `quota_exceeded:${node}-${i}`,
      username: `${node}-${i}`,
      nodeId: node,
    }));
  assert.equal(
    machine.apply(fill("n1", USER_ALERTS_PER_NODE_MAX), after(10_000)).length,
    USER_ALERTS_PER_NODE_MAX,
  );
  assert.equal(
    machine.apply(fill("n2", USER_ALERTS_PER_NODE_MAX), after(10_000)).length,
    USER_ALERTS_PER_NODE_MAX - 1,
  );
  assert.equal(machine.notRaised, 1);
});

test("what is restored is counted for its node too, and records come back in the order of their end (A-10)", () => {
  const machine = new AlertStateMachine();
  machine.apply([{ ...quota(99), nodeId: "n1" }], START);
  for (const [round, percent] of [81, 79, 96, 10].entries())
    machine.apply([storage(percent)], after(round * 1_000));
  const { alerts, muted } = machine.state();
  const again = new AlertStateMachine({ alerts: alerts.toReversed(), muted }, after(10_000));
  assert.equal([...again.alerts()].length, alerts.length);
  assert.equal([...again.openAlerts()].length, 1);
  assert.equal(again.apply([storage(81)], after(20_000))[0]?.alert.raised_count, 3);
  // The older ones are removed first.
  again.expire(after(1_000 + ALERT_KEPT_MS + 1));
  const left = [...again.alerts()].filter(({ resolved }) => resolved !== undefined);
  assert.deepEqual([...new Set(left.map(({ resolved }) => resolved?.atMs))], [START.wallMs + 3_000]);
});

test("what happened is counted over the ends of its alerts (D11)", () => {
  const machine = new AlertStateMachine();
  for (let i = 0; i < 3; i++) machine.happened(RESTART, after(i * 1_000));
  machine.expire(after(2_000 + RESTART_OVER_MS));
  const [again] = machine.happened(RESTART, after(2 * RESTART_OVER_MS));
  assert.deepEqual([again?.kind, again?.alert.raised_count], ["raised", 4]);
});

test("attempts against more users than there is room for are left out, and nothing comes of them later (M-05)", () => {
  const machine = new AlertStateMachine();
  const attempt = (at: number): Occurrence => ({
    key: `ip_mismatch:${at}`,
    type: "ip_mismatch",
    level: "warning",
    username: `${at}`,
    nodeId: "n1",
  });
  for (let at = 0; at <= USER_ALERTS_PER_NODE_MAX; at++) machine.happened(attempt(at), START);
  assert.equal(machine.notRaised, 1);
  const over = machine.expire(after(365 * 86_400_000));
  assert.equal(over.length, USER_ALERTS_PER_NODE_MAX);
});

test("which alerts are about single users, and which stand whatever an operator says (T10, D22)", () => {
  const kindsWith = (rule: "isAboutUser" | "isPermanent"): string[] =>
    Object.entries(ALERT_KINDS).flatMap(([type, kind]) => (kind[rule] === true ? [type] : []));
  assert.deepEqual(kindsWith("isAboutUser"), ["quota_exceeded", "ip_mismatch"]);
  assert.deepEqual(kindsWith("isPermanent"), ["auth_mock", "default_password"]);
});

test("a muted key that became worse is muted no longer, and its next end is told as any other (D11)", () => {
  const machine = new AlertStateMachine();
  const [raised] = machine.apply([storage(81)], START);
  machine.resolve([raised?.alert.id ?? ""], after(1_000));
  machine.apply([storage(96)], after(2_000));
  assert.deepEqual([...machine.mutedKeys()], []);
});

test("only records of a recovery say that they are one, and those never change (spec 3.1 rule 2)", () => {
  const machine = new AlertStateMachine();
  const [raised] = machine.apply([storage(81)], START);
  const [, recovery] = machine.apply([storage(79)], after(5_000));
  const of = (event: AlertEvent | undefined) => machine.find(event?.alert.id ?? "");
  assert.deepEqual([of(raised)?.isRecovery, of(recovery)?.isRecovery], [false, true]);
  assert.equal(of(recovery)?.revision, 0);
});

test("however many users are near their quota, alerts about the node itself are raised (M-05)", () => {
  const machine = new AlertStateMachine();
  for (let i = 0; i < USER_ALERTS_PER_NODE_MAX; i++)
    machine.apply([{ ...quota(99), key: `quota_exceeded:${i}`, username: `${i}` }], START);
  assert.deepEqual(kinds(machine.apply([storage(96)], after(1_000))), ["raised critical"]);
});

test("alerts about the node itself take no room of those about its users (M-05)", () => {
  const machine = new AlertStateMachine();
  machine.apply([storage(96)], START);
  for (let i = 0; i < USER_ALERTS_PER_NODE_MAX; i++)
    machine.apply([{ ...quota(99), key: `quota_exceeded:${i}`, username: `${i}` }], START);
  assert.equal(machine.notRaised, 0);
});

test("the end of what was muted is recorded as the first, when nothing else is kept of it (A-10)", () => {
  const muted = { key: STORAGE.key, type: STORAGE.type, severity: "warning", nodeId: "n1" } as const;
  const machine = new AlertStateMachine({ alerts: [], muted: [muted] }, START);
  const [recovery] = machine.apply([storage(79)], after(1_000));
  assert.deepEqual([recovery?.kind, recovery?.alert.raised_count], ["recorded", 1]);
});

test("what a condition does not say of its subject stays as it was (D11)", () => {
  const machine = new AlertStateMachine();
  const facts = { nodeName: "fs-1", username: "bob", value: 1, threshold: 2, detail: { a: 1 } };
  const about = { key: "corruption:n1", type: "corruption", level: "critical" } as const;
  machine.apply([{ ...about, nodeId: "n1", ...facts }], START);
  machine.apply([about], after(5_000));
  const { nodeId, nodeName, username, value, threshold, detail } = machine.openAlert(about.key) ?? {};
  assert.deepEqual({ nodeId, nodeName, username, value, threshold, detail }, { nodeId: "n1", ...facts });
});
