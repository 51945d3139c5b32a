// Tests of settling what an earlier console left: while the store is away, and without a trace of a restart.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { silentLogger } from "#base/log.ts";
import type { SshNode } from "#base/ssh-node.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { type ActionRecord, actionRecord } from "#wire/webapi/action-record.ts";
import { ActionHistory } from "./action-history.ts";
import type { SettledTarget } from "./action-run.ts";
import { NodeLocks } from "./node-locks.ts";
import { reconcile } from "./reconcile.ts";

const NODE: SshNode = {
  id: "n1",
  host: "n1.example.net",
  port: 22,
  user: "svc",
  hostKey: "ssh-ed25519 AAAA",
  repository: "grove",
  services: {},
};

interface Rig {
  readonly clock: ManualClock;
  readonly history: ActionHistory;
  readonly locks: NodeLocks;
  /** `settle` of each node, in order: its mode. */
  readonly asked: string[];
  /** Records whose end was told. */
  readonly told: ActionRecord[];
  readonly stop: AbortController;
  store: () => Promise<readonly SshNode[]>;
  trace: SettledTarget;
  settle(): Promise<void>;
  record(): ActionRecord | undefined;
}

/** A console that starts with one unfinished record. */
async function setUp(state: "running" | "handed_over"): Promise<Rig> {
  const clock = new ManualClock();
  const open = { folder: scratchFolder("reconcile-"), clock, log: silentLogger };
  const { history: before } = await ActionHistory.open(open);
  const target = { node_id: "n1", node_name: "n1", argv: ["x"], exit_code: null, state: "running" };
  await before.put(
    actionRecord.parse({
      id: "01J9ZZZZZZZZZZZZZZZZZZZZZZ",
      action: "restart",
      request: { action: "restart", nodes: ["n1"], dry_run: false, target_service: "admin" },
      operator: { session: "0123abcd", ip: "127.0.0.1" },
      state,
      created_at: 1,
      exit_code: null,
      stdout: "",
      stderr: "",
      targets: [{ ...target, started_at: 1, stdout: "", stderr: "", truncated: false }],
    }),
  );
  const { history } = await ActionHistory.open(open);
  const locks = new NodeLocks(clock);
  const asked: string[] = [];
  const told: ActionRecord[] = [];
  const stop = new AbortController();
  const rig: Rig = {
    clock,
    history,
    locks,
    asked,
    told,
    stop,
    store: async () => [NODE],
    trace: { state: "ended", exitCode: 0, bootId: "b" },
    settle: () =>
      reconcile({
        clock,
        log: silentLogger,
        history,
        locks,
        signal: stop.signal,
        onEnd: async (ended) => void told.push(ended),
        nodes: () => rig.store(),
        runner: {
          run: () => assert.fail("nothing is run"),
          settle: async (_node, _id, mode) => {
            asked.push(mode);
            return rig.trace;
          },
          isHealthy: async () => true,
        },
      }),
    record: () => history.list()[0],
  };
  return rig;
}

const away = async (): Promise<never> => {
  throw new GroveError("STORE_UNAVAILABLE", "no answer");
};

test("while the metadata store is away nodes stay locked and unsettled, and what runs there is ended once it answers (D7, T14)", async () => {
  const rig = await setUp("running");
  rig.store = away;
  const through = rig.settle();
  // Longer than any lock by itself.
  for (let at = 0; at < 60; at++) {
    rig.clock.advance(5_000);
    await new Promise(setImmediate);
  }
  assert.deepEqual(rig.asked, []);
  assert.equal(rig.locks.holder("n1")?.actionId, rig.record()?.id);
  assert.equal(rig.record()?.targets[0]?.message, undefined);
  rig.store = async () => [NODE];
  await until(() => {
    rig.clock.advance(1_000);
    return rig.asked.length > 0;
  });
  await through;
  assert.deepEqual(rig.asked, ["end"]);
  assert.equal(rig.locks.holder("n1"), undefined);
  assert.equal(rig.record()?.targets[0]?.state, "succeeded");
});

test("a console that stops while the store is away leaves the record for the next one", async () => {
  const rig = await setUp("running");
  rig.store = away;
  const through = rig.settle();
  rig.stop.abort();
  await through;
  assert.equal(rig.record()?.targets[0]?.message, undefined);
  assert.equal(rig.record()?.targets[0]?.state, "unknown");
});

test("a restart of the console that has left no end on its node is not told as done (T14)", async () => {
  for (const [trace, expected] of [
    [{ state: "none", bootId: "b" }, /not known: its end was not found on the node/],
    [{ state: "unknown", message: "n1 cannot be reached" }, /not known: n1 cannot be reached/],
  ] as const) {
    const rig = await setUp("handed_over");
    rig.trace = trace;
    let isThrough = false;
    void rig.settle().then(() => {
      isThrough = true;
    });
    await until(() => {
      rig.clock.advance(1_000);
      return isThrough;
    });
    const [target] = rig.record()?.targets ?? [];
    assert.equal(target?.state, "unknown");
    assert.match(target.message ?? "", expected);
    assert.equal(rig.record()?.state, "failed");
  }
});

test("the end of what an earlier console began is told as that of any action: its alert begins or ends with it (D11)", async () => {
  for (const [state, exitCode, expected] of [
    ["handed_over", 0, "succeeded"],
    ["handed_over", 1, "failed"],
    ["running", 143, "cancelled"],
  ] as const) {
    const rig = await setUp(state);
    rig.trace = { state: "ended", exitCode, bootId: "b" };
    await rig.settle();
    assert.deepEqual(rig.told, [rig.record()]);
    assert.equal(rig.told[0]?.targets[0]?.state, expected);
  }
  const stopped = await setUp("running");
  stopped.store = away;
  const through = stopped.settle();
  stopped.stop.abort();
  await through;
  assert.deepEqual(stopped.told, [], "the next console settles it");
});

test("a restart of the console whose host answers late is settled by what it has left", async () => {
  const rig = await setUp("handed_over");
  rig.trace = { state: "unknown", message: "n1 cannot be reached" };
  let isThrough = false;
  void rig.settle().then(() => {
    isThrough = true;
  });
  await until(() => {
    rig.clock.advance(1_000);
    return rig.asked.length > 3;
  });
  rig.trace = { state: "ended", exitCode: 0, bootId: "b" };
  await until(() => {
    rig.clock.advance(1_000);
    return isThrough;
  });
  assert.equal(rig.record()?.state, "succeeded");
});

test("an action on a node that starts later than its console is ended there, and its node is locked until then (E-05)", async () => {
  const rig = await setUp("running");
  rig.trace = { state: "unknown", message: "n1 cannot be reached" };
  const through = rig.settle();
  await until(() => {
    rig.clock.advance(1_000);
    return rig.asked.length > 5;
  });
  assert.equal(rig.locks.holder("n1")?.actionId, rig.record()?.id);
  rig.trace = { state: "ended", exitCode: 143, bootId: "b" };
  await until(() => {
    rig.clock.advance(1_000);
    return rig.locks.holder("n1") === undefined;
  });
  await through;
  assert.equal(rig.record()?.targets[0]?.state, "cancelled");
});
