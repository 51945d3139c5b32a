// Tests the reported losses of a restore: users whose roots are gone or older than the console saw them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { textOf } from "#console/alerts/alert-texts.ts";
import { nodeReading, testCluster } from "#console/cluster/cluster-state.fixture.ts";
import type { NodeReading, UserDetail } from "#console/cluster/cluster-state.ts";
import { type FoundRestore, RestoredNodes } from "./restored-node.ts";

const found = (lost: Partial<FoundRestore["lost"]> = {}): FoundRestore => ({
  node: { id: "n1", name: "fs-1" },
  line: {
    backup: "000012-20261122T202800Z",
    takenAtMs: Date.UTC(2026, 10, 22, 20, 28),
    upTo: 40,
    seq: 41,
    prev: "0".repeat(64),
    atMs: Date.UTC(2026, 10, 22, 21),
  },
  lost: { hash: undefined, count: 3, changed: new Set(), quotas: new Set(), ...lost },
});
const STORE = { kind: "sqlite", place: "/srv/grove/metadata.db" } as const;
const maps = (users: Readonly<Record<string, readonly [bigint, bigint]>>) => ({
  perUserStorage: new Map(Object.entries(users).map(([name, [used]]) => [name, used])),
  perUserQuota: new Map(Object.entries(users).map(([name, [, quota]]) => [name, quota])),
  usersWithheld: false,
});

test("roots that are gone, roots and quotas that are older, are named; the same ones are not", () => {
  const { clusterState } = testCluster("n1");
  const nodes = new RestoredNodes(clusterState, STORE);
  const before = {
    "alice@example.com": [5n, 9n],
    "bob@example.com": [7n, 9n],
    "carol@example.com": [1n, 8n],
    "dave@example.com": [2n, 9n],
  } as const;
  clusterState.answered("n1", nodeReading({ ...maps(before), lastRestartUnix: 1_000 }));
  const now = {
    "alice@example.com": [5n, 9n],
    "bob@example.com": [6n, 9n],
    "carol@example.com": [1n, 9n],
  } as const;
  clusterState.answered("n1", nodeReading({ ...maps(now), lastRestartUnix: 2_000 }));
  const told = nodes.occurrenceOf(found({ changed: new Set(["alice@example.com", "dave@example.com"]) }));
  assert.deepEqual([told.key, told.level], ["node_restored:n1", "critical"]);
  assert.deepEqual(told.detail, {
    backup: "000012-20261122T202800Z",
    taken_at: Date.UTC(2026, 10, 22, 20, 28) / 1_000,
    up_to: 40,
    lost_lines: 3,
    gone: "dave@example.com",
    gone_count: 1,
    command: "grove node lost-root dave@example.com -meta sqlite:/srv/grove/metadata.db",
    older: "alice@example.com, bob@example.com",
    older_count: 2,
    quotas: "carol@example.com",
    quotas_count: 1,
  });
  const text = textOf(
    "node_restored",
    { severity: "critical", node: "fs-1", detail: told.detail ?? {} },
    false,
  );
  assert.equal(text.title, "fs-1 was restored from 2026-11-22 20:28 UTC");
  assert.equal(
    text.message,
    "fs-1 was restored from its backup of 2026-11-22 20:28 UTC (000012-20261122T202800Z): whatever came after that is not there. " +
      "Its audit log goes on behind line 40; 3 later lines are kept here. Roots that are gone: dave@example.com. " +
      "Roots that are older than they were: alice@example.com, bob@example.com. Quotas that are older than they were: carol@example.com. " +
      "Users whose root is gone are told so when they sign in; an empty one is made once you confirm it with grove node lost-root.",
  );
  nodes.close();
  clusterState.close();
});

test("a restored node that starts again before the restore is told is held against what was there before the restore", () => {
  const { clusterState } = testCluster("n1");
  const nodes = new RestoredNodes(clusterState, STORE);
  const restoredS = found().line.atMs / 1_000;
  const poll = (startedS: number, users: Parameters<typeof maps>[0]): void =>
    clusterState.answered("n1", nodeReading({ ...maps(users), lastRestartUnix: restoredS + startedS }));
  const whole = { "alice@example.com": [5n, 9n], "dave@example.com": [2n, 9n] } as const;
  const older = { "alice@example.com": [5n, 9n] } as const;
  poll(-9_000, { "eve@example.com": [1n, 9n] });
  poll(-3_000, whole);
  for (let start = 0; start < 20; start++) {
    poll(start * 30, older);
    const { level, detail } = nodes.occurrenceOf(found());
    assert.deepEqual(
      [level, detail?.["gone"], detail?.["older"]],
      ["critical", "dave@example.com", undefined],
    );
  }
  // A console without earlier polls has no losses to report.
  poll(9_000, older);
  assert.equal(nodes.occurrenceOf(found()).detail?.["is_partial"], 1);
  nodes.close();
  clusterState.close();
});

test("a root of as many bytes in other files and folders is older too", () => {
  const { clusterState } = testCluster("n1");
  const nodes = new RestoredNodes(clusterState, STORE);
  const reading = (inodeCount: number, lastRestartUnix: number): NodeReading => {
    const perUserDetail = new Map([["erin@example.com", { inodeCount, fileCount: 1 } as UserDetail]]);
    return nodeReading({ ...maps({ "erin@example.com": [5n, 9n] }), perUserDetail, lastRestartUnix });
  };
  clusterState.answered("n1", reading(4, 1_000));
  clusterState.answered("n1", reading(3, 2_000));
  const told = nodes.occurrenceOf(found());
  assert.deepEqual([told.level, told.detail?.["older"]], ["warning", "erin@example.com"]);
  nodes.close();
  clusterState.close();
});

test("a console that did not see the node before says so, and names whom the lost lines name", () => {
  const { clusterState } = testCluster("n1");
  const nodes = new RestoredNodes(clusterState, STORE);
  clusterState.answered("n1", nodeReading({ ...maps({}), lastRestartUnix: 2_000 }));
  const told = nodes.occurrenceOf(found({ quotas: new Set(["carol@example.com"]) }));
  assert.deepEqual(
    [told.level, told.detail?.["quotas"], told.detail?.["is_partial"]],
    ["warning", "carol@example.com", 1],
  );
  nodes.close();
  clusterState.close();
});

test("the command to give roots up has every name as one word, whatever a node calls its users", () => {
  const { clusterState } = testCluster("n1");
  const nodes = new RestoredNodes(clusterState, undefined);
  const names = ["-meta=x@example.com", "$(reboot)@example.com", "o'neil@example.com", "zoe@example.com"];
  const users = Object.fromEntries(names.map((name) => [name, [1n, 9n] as const]));
  clusterState.answered("n1", nodeReading({ ...maps(users), lastRestartUnix: 1_000 }));
  clusterState.answered("n1", nodeReading({ ...maps({}), lastRestartUnix: 2_000 }));
  assert.equal(
    nodes.occurrenceOf(found()).detail?.["command"],
    "grove node lost-root '$(reboot)@example.com' 'o'\\''neil@example.com' zoe@example.com -meta STORE",
  );
  nodes.close();
  clusterState.close();
});
