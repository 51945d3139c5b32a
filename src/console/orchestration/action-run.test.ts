// Tests the order of an action's record and its start on a node.
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import type { SshNode } from "#base/ssh-node.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import type { ActionRecord } from "#wire/webapi/action-record.ts";
import { newJob, newRecord } from "./action-job.ts";
import { runJob, type TargetRunner } from "./action-run.ts";
import { OutputStore } from "./output-store.ts";

const ID = "01JD0000000000000000000001";
const NODE = { id: "n1" } as SshNode;

/** Runs an action on one node; resolves with how often the node was asked, which goes on counting. */
async function runWith(save: (record: ActionRecord) => Promise<void>): Promise<{ begun: number }> {
  const seen = { begun: 0 };
  const runner: TargetRunner = {
    run: async () => {
      seen.begun++;
      return { state: "succeeded", exitCode: 0, captured: {}, isOutputCut: false };
    },
    settle: () => Promise.reject(new Error("nothing is settled here")),
    isHealthy: async () => true,
  };
  const plan = { steps: [], limitSeconds: 10, expectsReboot: false, consoleStep: undefined };
  const requested = {
    request: { action: "exec", targets: ["n1"] } as never,
    operator: { session: "s", ip: "127.0.0.1" },
    nodes: [{ node: NODE, plan }],
  };
  const job = newJob(newRecord(ID, systemClock, { ...requested, nameOf: (id) => id }), requested);
  const nothing = (): void => undefined;
  const deps = {
    clock: systemClock,
    log: silentLogger,
    outputs: await OutputStore.open(scratchFolder("action-run-")),
    runner,
    events: { onState: nothing, onOutput: nothing, onEnd: nothing, onDone: nothing },
  };
  void runJob(job, deps, () => save(job.record)).catch(nothing);
  return seen;
}

const isBegun = ({ targets }: ActionRecord): boolean => targets[0]?.started_at !== undefined;

test("a node is asked once the record that names it is on stable storage, so that a killed console's is ended (D7)", async () => {
  const written = Promise.withResolvers<void>();
  let isWaiting = false;
  const seen = await runWith(async (record) => {
    if (!isBegun(record)) return;
    isWaiting = true;
    await written.promise;
  });
  await until(() => isWaiting);
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  assert.equal(seen.begun, 0);
  written.resolve();
  await until(() => seen.begun === 1);
});

test("a record that cannot be written keeps no action from a node (E-06)", async () => {
  const seen = await runWith(() => Promise.reject(new Error("the disk is full")));
  await until(() => seen.begun === 1);
});
