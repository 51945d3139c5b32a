// Tests that alerts reach the disk before listeners, and damaged, old, newer or unwritable files.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ManualClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { alertRecord } from "#wire/webapi/alert.ts";
import { ALERTS_FILE } from "./alert-file.ts";
import { AlertStore, momentOf } from "./alert-store.ts";
import type { Condition } from "./condition.ts";
import { gradeOf } from "./node-rules.ts";

const clock = new ManualClock();
const open = (folder: string): Promise<AlertStore> => AlertStore.open({ folder, clock, log: silentLogger });
const storage = (percent: number, node = "n1"): Condition => ({
  key: `storage_warning:${node}`,
  type: "storage_warning",
  nodeId: node,
  nodeName: `fs-${node}`,
  detail: { free_bytes: "18446744073709551615" },
  ...gradeOf(percent, { warning: 80, critical: 95 }),
});
const put = (store: AlertStore, ...conditions: Condition[]): Promise<void> =>
  store.take(store.machine.apply(conditions, momentOf(clock)));
const keys = (store: AlertStore): string[] => [...store.shown()].map(({ key }) => key);

async function inFile(folder: string): Promise<{ alerts: unknown[]; schema: number }> {
  return JSON.parse(await readFile(join(folder, ALERTS_FILE), "utf8")) as {
    alerts: unknown[];
    schema: number;
  };
}

test("an alert is in the file before anybody is told of it or can read it (spec 2.6)", async () => {
  const folder = scratchFolder("grove-alerts-");
  const store = await open(folder);
  const seen: Promise<{ alerts: unknown[] }>[] = [];
  store.onEvent(() => seen.push(inFile(folder)));
  const saved = put(store, storage(81));
  assert.deepEqual(keys(store), [], "not shown yet");
  await saved;
  assert.deepEqual(keys(store), ["storage_warning:n1"]);
  const [file] = await Promise.all(seen);
  assert.equal(file?.alerts.length, 1);
  alertRecord.parse(file.alerts[0]);
  assert.equal((await stat(join(folder, ALERTS_FILE))).mode & 0o777, 0o600);
});

test("everything that one turn brings is one write, and events are told in their order", async () => {
  const folder = scratchFolder("grove-alerts-");
  const store = await open(folder);
  const told: string[] = [];
  store.onEvent(({ kind, alert }) => told.push(`${kind} ${alert.node_id}`));
  void put(store, storage(81, "a"));
  void put(store, storage(81, "b"));
  void put(store, storage(79, "a"));
  await store.close();
  assert.deepEqual(told, ["raised a", "raised b", "resolved a", "recorded a"]);
  // The first write leaves no previous generation.
  assert.deepEqual(await readdir(folder), [ALERTS_FILE]);
});

test("after a restart the same alerts are there, with their numbers, counts and who resolved them", async () => {
  const folder = scratchFolder("grove-alerts-");
  const store = await open(folder);
  store.securityMarks.set("n1", "01K5YDWV000000000000000000");
  await put(store, storage(81.5), storage(97, "n2"));
  const ids = [...store.shown()].map(({ id }) => id);
  const { events } = store.machine.resolve([ids[0] ?? ""], momentOf(clock));
  await store.take(events);
  await store.take(store.machine.acknowledge(ids[1] ?? "", "0123abcd", momentOf(clock)));
  const before = [...store.shown()];
  const again = await open(folder);
  assert.deepEqual([...again.shown()], before);
  assert.deepEqual([...again.securityMarks], [["n1", "01K5YDWV000000000000000000"]]);
  assert.deepEqual(
    again.machine.apply([storage(82), storage(98, "n2")], momentOf(clock)),
    [],
    "muted, and open",
  );
});

test("whom an alert is about is known after a restart, and what was resolved of the console itself stays so (A-10)", async () => {
  const folder = scratchFolder("grove-alerts-");
  const store = await open(folder);
  const quota: Condition = {
    key: "quota_exceeded:bob",
    type: "quota_exceeded",
    level: "critical",
    username: "bob",
  };
  const certificate: Condition = { key: "cert_expiring", type: "cert_expiring", level: "warning", value: 5 };
  await put(store, quota, certificate);
  const id = store.machine.openAlert(certificate.key)?.id ?? "";
  await store.take(store.machine.resolve([id], momentOf(clock)).events);
  const again = await open(folder);
  assert.equal(again.machine.openAlert(quota.key)?.username, "bob");
  assert.deepEqual([...again.machine.mutedKeys()], [...store.machine.mutedKeys()]);
  assert.deepEqual(again.machine.apply([quota, certificate], momentOf(clock)), []);
});

test("numbers beyond 2^53, as of a user with 1 byte of quota, come back from the file", async () => {
  const folder = scratchFolder("grove-alerts-");
  const store = await open(folder);
  const drift: Condition = {
    key: "quota_drift:n1",
    type: "quota_drift",
    level: "warning",
    value: 2 ** 63,
    detail: { errors: 1e19 },
  };
  await put(store, drift, storage(81));
  const again = await open(folder);
  assert.equal(again.found.setAsideAs, undefined);
  assert.deepEqual(keys(again), keys(store));
  assert.equal(again.machine.openAlert(drift.key)?.value, 2 ** 63);
  assert.deepEqual(again.machine.openAlert(drift.key)?.detail, { errors: 1e19 });
});

test("a file torn at any place is set aside, and the generation before it is taken", async () => {
  const folder = scratchFolder("grove-alerts-");
  const path = join(folder, ALERTS_FILE);
  const store = await open(folder);
  await put(store, storage(81));
  await put(store, storage(81, "n2"));
  const { size } = await stat(path);
  const whole = await readFile(path);
  for (let length = 0; length < size - 1; length += 97) {
    await truncate(path, length);
    const again = await open(folder);
    assert.deepEqual(keys(again), ["storage_warning:n1"], `cut to ${length} bytes`);
    assert.equal(again.found.isPrevious, true);
    assert.match(again.found.setAsideAs ?? "", /admin_alerts\.json\.corrupt-\d+$/);
    await writeFile(path, whole);
  }
});

for (const [what, text] of [
  ["an array", "[]"],
  ["null", "null"],
  ["NUL bytes", "\0\0\0\0"],
  ["deep nesting", "[".repeat(50_000)],
  ["__proto__", '{"schema":1,"alerts":[],"muted":[],"security_marks":{},"__proto__":{"x":1}}'],
  ["a record with a wrong type", '{"schema":1,"alerts":[{"id":7}],"muted":[],"security_marks":{}}'],
] as const) {
  test(`a file that holds ${what} is set aside and never fatal`, async () => {
    const folder = scratchFolder("grove-alerts-");
    await writeFile(join(folder, ALERTS_FILE), text);
    const store = await open(folder);
    assert.deepEqual(keys(store), []);
    assert.ok(store.found.setAsideAs !== undefined);
    assert.equal(await readFile(store.found.setAsideAs, "utf8"), text);
    await put(store, storage(81));
    assert.deepEqual(keys(await open(folder)), ["storage_warning:n1"]);
  });
}

test("a file that a newer version wrote is left alone, and the start refused (D18)", async () => {
  const folder = scratchFolder("grove-alerts-");
  await writeFile(join(folder, ALERTS_FILE), '{"schema":2,"alerts":{}}');
  await assert.rejects(open(folder), { code: "BAD_ARGUMENT" });
  assert.deepEqual(await readdir(folder), [ALERTS_FILE]);
});

test("what cannot be written is shown and told all the same, and written with the next change", async () => {
  const folder = scratchFolder("grove-alerts-");
  const store = await open(folder);
  await rm(folder, { recursive: true });
  const told: string[] = [];
  store.onEvent(({ alert }) => told.push(alert.key));
  await put(store, storage(81));
  assert.deepEqual([told, keys(store)], [["storage_warning:n1"], ["storage_warning:n1"]]);
  assert.match(store.failure ?? "", /ENOENT/);
  const { mkdir } = await import("node:fs/promises");
  await mkdir(folder);
  await store.take([]);
  assert.equal(store.failure, undefined);
  assert.equal((await inFile(folder)).alerts.length, 1);
});

test("alerts that flap write the file ten times, then once a second, and are still told only when they are in it", async () => {
  const folder = scratchFolder("grove-alerts-");
  const ticking = new ManualClock();
  const store = await AlertStore.open({ folder, clock: ticking, log: silentLogger });
  let told = 0;
  store.onEvent(() => told++);
  const flap = (percent: number): Promise<void> =>
    store.take(store.machine.apply([storage(percent)], momentOf(ticking)));
  const isDone = async (saved: Promise<void>): Promise<boolean> =>
    Promise.race([saved.then(() => true), new Promise<false>((resolve) => setTimeout(resolve, 100, false))]);
  for (let i = 0; i < 5; i++) {
    await flap(81);
    await flap(79);
  }
  const before = told;
  const [first, second] = [flap(81), flap(79)];
  assert.equal(await isDone(second), false);
  assert.deepEqual([told, keys(store)[0]], [before, keys(store)[0]]);
  ticking.advance(999);
  assert.equal(await isDone(second), false);
  ticking.advance(1);
  await Promise.all([first, second]);
  assert.equal(told, before + 3, "raised, resolved, recorded, with one write");
  const last = flap(81);
  await store.close();
  await last;
  assert.equal((await inFile(folder)).alerts.length, [...store.shown()].length, "its end waits for nothing");
});

test("a node that counts attempts beyond all numbers costs no alert at the next start (M-05)", async () => {
  const folder = scratchFolder("grove-alerts-");
  const store = await open(folder);
  const attempts = {
    key: "mock_token:n1",
    type: "mock_token",
    level: "critical",
    count: Number.MAX_SAFE_INTEGER,
  } as const;
  await put(store, storage(81));
  for (let i = 0; i < 2; i++) await store.take(store.machine.happened(attempts, momentOf(clock)));
  await store.close();
  const again = await open(folder);
  assert.equal(again.found.setAsideAs, undefined);
  assert.deepEqual(keys(again).toSorted(), ["mock_token:n1", "storage_warning:n1"]);
});

test("killed at any moment, the store has lost no alert that it told of", async () => {
  const folder = scratchFolder("grove-alerts-");
  const told = new Set<string>();
  for (let round = 0; round < 5; round++) {
    const child = spawn(
      process.execPath,
      [fileURLToPath(new URL("alert-load.fixture.ts", import.meta.url)), folder],
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    await readSome(child, told, 40 + round * 7);
    const kept = new Set([...(await open(folder)).machine.alerts()].map(({ id }) => id));
    assert.deepEqual(
      [...told].filter((id) => !kept.has(id)),
      [],
    );
  }
  assert.ok(told.size > 100);
});

/** Reads a child's events, and kills it in the middle of them. */
async function readSome(child: ChildProcess, told: Set<string>, count: number): Promise<void> {
  const gone = new Promise((resolve) => child.once("close", resolve));
  assert.ok(child.stdout !== null);
  let left = count;
  for await (const id of createInterface(child.stdout)) {
    told.add(id);
    if (--left === 0) child.kill("SIGKILL");
  }
  await gone;
}
