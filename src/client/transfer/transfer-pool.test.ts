// Tests of the order and the bounds in which transfers run.
import assert from "node:assert/strict";
import { test } from "node:test";
import { TransferPool } from "./transfer-pool.ts";

const LIMITS = { foldersInFlight: 1, inFlight: 4, largeInFlight: 2, waiting: 8 };

/** Transfers that end on demand. */
function makeTransfers(): {
  start: (name: string) => () => Promise<void>;
  running: Set<string>;
  end: (name: string) => void;
} {
  const running = new Set<string>();
  const ends = new Map<string, () => void>();
  return {
    running,
    start: (name) => () => {
      running.add(name);
      return new Promise<void>((resolve) => {
        ends.set(name, () => {
          running.delete(name);
          resolve();
        });
      });
    },
    end: (name) => ends.get(name)?.(),
  };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("at most four small and two large ones run at a time, in their order", async () => {
  const pool = new TransferPool(LIMITS);
  const { start, running, end } = makeTransfers();
  for (let at = 0; at < 6; at++) void pool.add(start(`s${at}`), "small");
  for (let at = 0; at < 3; at++) void pool.add(start(`l${at}`), "large");
  assert.deepEqual([...running], ["s0", "s1", "s2", "s3", "l0", "l1"]);
  end("s2");
  end("l0");
  await turn();
  assert.deepEqual([...running].sort(), ["l1", "l2", "s0", "s1", "s3", "s4"]);
  for (const name of ["s0", "s1", "s3", "s4", "l1", "l2"]) end(name);
  await turn();
  end("s5");
  await pool.done();
  assert.equal(running.size, 0);
});

test("whoever adds waits when as many wait as may", async () => {
  const pool = new TransferPool(LIMITS);
  const { start, end } = makeTransfers();
  for (let at = 0; at < 4 + 7; at++) assert.equal(pool.add(start(`s${at}`), "small"), true);
  const added = pool.add(start("s11"), "small");
  assert.notEqual(added, true);
  let isIn = false;
  const waiting = Promise.resolve(added).then(() => {
    isIn = true;
  });
  await turn();
  assert.equal(isIn, false);
  end("s0");
  await waiting;
});

test("a failure begins nothing more, and is thrown when the running ones have ended", async () => {
  const pool = new TransferPool(LIMITS);
  const { start, running, end } = makeTransfers();
  void pool.add(start("first"), "small");
  void pool.add(() => Promise.reject(new Error("broken")), "small");
  void pool.add(() => Promise.reject(new Error("later")), "small");
  await turn();
  assert.equal(pool.hasFailed, true);
  assert.throws(() => pool.add(start("second"), "small"), /broken/);
  const done = pool.done();
  let isDone = false;
  done.catch(() => {
    isDone = true;
  });
  await turn();
  assert.equal(isDone, false);
  end("first");
  await assert.rejects(done, /broken/);
  assert.equal(running.has("second"), false);
});

test("files that wait for their folder leave their places to others", async () => {
  const pool = new TransferPool(LIMITS);
  const { start, running, end } = makeTransfers();
  const folder = Promise.withResolvers<void>();
  for (let at = 0; at < 4; at++) void pool.add(start(`inside${at}`), "small", folder.promise);
  void pool.add(start("folder"), "folder");
  void pool.add(start("other"), "small");
  assert.deepEqual([...running], ["folder", "other"]);
  end("folder");
  folder.resolve();
  await turn();
  assert.deepEqual([...running], ["other", "inside0", "inside1", "inside2"]);
  end("other");
  await turn();
  const done = pool.done();
  for (const name of running) end(name);
  await done;
  assert.equal(running.size, 0);
});

test("the end waits for what may not begin yet, but not after a failure", async () => {
  const pool = new TransferPool(LIMITS);
  const { start, running, end } = makeTransfers();
  const folder = Promise.withResolvers<void>();
  void pool.add(start("inside"), "small", folder.promise);
  void pool.add(start("never"), "large", new Promise(() => {}));
  let isDone = false;
  const done = pool.done().finally(() => {
    isDone = true;
  });
  done.catch(() => undefined);
  await turn();
  assert.equal(isDone, false);
  folder.resolve();
  await turn();
  assert.deepEqual([...running], ["inside"]);
  void pool.add(() => Promise.reject(new Error("broken")), "folder");
  end("inside");
  await assert.rejects(done, /broken/);
});

test("what may not begin yet counts among the waiting", async () => {
  const pool = new TransferPool(LIMITS);
  const { start, end } = makeTransfers();
  const folder = Promise.withResolvers<void>();
  for (let at = 0; at < 7; at++) assert.equal(pool.add(start(`s${at}`), "small", folder.promise), true);
  const added = pool.add(start("s7"), "small", folder.promise);
  assert.notEqual(added, true);
  folder.resolve();
  await added;
  for (let at = 0; at < 4; at++) end(`s${at}`);
  await turn();
  for (let at = 4; at < 8; at++) end(`s${at}`);
  await pool.done();
});
