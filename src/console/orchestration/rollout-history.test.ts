// Tests the rollouts' history: write-ahead, none "running" after a crash, damaged files (A-10, E-06).
import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { silentLogger } from "#base/log.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import type { RolloutRecord } from "#wire/webapi/rollout.ts";
import { ROLLOUTS_KEPT, RolloutHistory } from "./rollout-history.ts";

const COMMIT = "b".repeat(40);

const open = (folder: string): ReturnType<typeof RolloutHistory.open> =>
  RolloutHistory.open({ folder, clock: new ManualClock(), log: silentLogger });

const idOf = (at: number): string => `01JD00000000000000000${String(at).padStart(5, "0")}`;

function record(at: number, more: Partial<RolloutRecord> = {}): RolloutRecord {
  const node = { node_name: "", wave: 0, steps: [], changed: false, state: "pending" as const };
  return {
    id: idOf(at),
    direction: "forward",
    request: {
      nodes: "all",
      branch: "main",
      make_target: "build",
      restart_mode: "systemctl",
      target_service: "all",
      step_size: 1,
      gates: { health_seconds: 60, observe_seconds: 30, errors_per_second_above: 0.1 },
      dry_run: false,
    },
    operator: { session: "0123abcd", ip: "::1" },
    state: "running",
    seq: 1,
    created_at: 1,
    can_go_back: false,
    nodes: [
      { ...node, node_id: "n1", state: "succeeded", changed: true, commit_before: COMMIT },
      { ...node, node_id: "n2", state: "running", step: "build", changed: true, commit_before: COMMIT },
      { ...node, node_id: "n3" },
    ],
    ...more,
  };
}

test("what a console left running is interrupted for the next, which says what is known and can go back", async () => {
  const folder = scratchFolder("rollouts-");
  const { history } = await open(folder);
  await history.put(record(1));
  const { history: next } = await open(folder);
  const found = next.find(idOf(1));
  assert.deepEqual(
    [
      found?.state,
      found?.can_go_back,
      ...(found?.nodes ?? []).map(({ state, message }) => `${state} ${message}`),
    ],
    [
      "interrupted",
      true,
      "succeeded undefined",
      "unknown the console ended during the step build",
      "skipped undefined",
    ],
  );
  const { history: third } = await open(folder);
  assert.deepEqual(third.list(), next.list());
});

test("a console starts on a full disk over a rollout that the one before has left", async () => {
  const folder = scratchFolder("rollouts-");
  await (await open(folder)).history.put(record(1));
  const replaceFile = (): Promise<void> => Promise.reject(new Error("no space left"));
  const { history } = await RolloutHistory.open({
    folder,
    clock: new ManualClock(),
    log: silentLogger,
    replaceFile,
  });
  assert.equal(history.find(idOf(1))?.state, "interrupted");
});

test("damaged files are set aside one by one, and a newer schema is refused", async () => {
  const folder = scratchFolder("rollouts-");
  const { history } = await open(folder);
  await history.put(record(1, { state: "succeeded" }));
  writeFileSync(join(folder, "rollouts", `${idOf(2)}.json`), "{");
  const { history: next, setAside } = await open(folder);
  assert.deepEqual(
    next.list().map(({ id }) => id),
    [idOf(1)],
  );
  assert.match(setAside[0] ?? "", /\.json\.corrupt-\d+$/);
  writeFileSync(join(folder, "rollouts", `${idOf(3)}.json`), '{"schema":2}');
  await assert.rejects(open(folder), /newer Grove/);
});

test("of finished ones the newest are kept, and those that run besides", async () => {
  const folder = scratchFolder("rollouts-");
  const { history } = await open(folder);
  await history.put(record(0));
  for (let at = 1; at <= ROLLOUTS_KEPT + 2; at++) await history.put(record(at, { state: "failed" }));
  await history.prune();
  assert.equal(history.list().length, ROLLOUTS_KEPT + 1);
  assert.deepEqual(
    [history.find(idOf(0))?.state, history.find(idOf(2)), history.find(idOf(3))?.state],
    ["running", undefined, "failed"],
  );
  assert.equal(readdirSync(join(folder, "rollouts")).length, ROLLOUTS_KEPT + 1);
});

test("a flush that has failed is not tried again until a restart", async () => {
  const folder = scratchFolder("rollouts-");
  let tries = 0;
  const { history } = await RolloutHistory.open({
    folder,
    clock: new ManualClock(),
    log: silentLogger,
    replaceFile: () => {
      tries++;
      return Promise.reject(new GroveError("STORAGE_FAILED", "no flush"));
    },
  });
  await assert.rejects(history.put(record(1)), /could not be written down/);
  await assert.rejects(history.put(record(1)), /until a restart/);
  assert.equal(tries, 1);
});
