// Tests how test files are spread over processes and lanes.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { planTasks, runInLanes } from "./test-pool.ts";

const names = fc.uniqueArray(fc.stringMatching(/^(?:src|web)\/[a-c]\/[a-z]{1,3}$/), { maxLength: 80 });
const someOf = (files: readonly string[]): fc.Arbitrary<string[]> => fc.subarray([...files]);

test("each file is in one process; only shareable ones of a wing share it, and at most twelve", () => {
  const plans = names.chain((files) => fc.tuple(fc.constant(files), someOf(files), someOf(files)));
  fc.assert(
    fc.property(plans, ([files, longest, shareable]) => {
      const tasks = planTasks(files, { longest, shareable: new Set(shareable) });
      assert.deepEqual(tasks.flat().toSorted(), files.toSorted());
      assert.deepEqual(
        tasks.slice(0, longest.length),
        longest.map((path) => [path]),
      );
      for (const task of tasks.filter(({ length }) => length > 1)) {
        assert.ok(task.length <= 12);
        assert.ok(task.every((path) => shareable.includes(path) && !longest.includes(path)));
        assert.equal(new Set(task.map((path) => path.slice(0, 5))).size, 1);
      }
    }),
  );
});

test("shared processes are equally full, and start after the longest files and before all others", () => {
  const wing = Array.from({ length: 13 }, (_, at) => `src/a/${String.fromCharCode(97 + at)}`);
  const files = ["src/b/alone", "src/b/long", ...wing];
  const tasks = planTasks(files, { longest: ["src/b/long", "src/not/here"], shareable: new Set(wing) });
  assert.deepEqual(tasks, [["src/b/long"], wing.slice(0, 7), wing.slice(7), ["src/b/alone"]]);
});

test("files beside the wings of a folder share processes too, and none with those of a wing", () => {
  const files = ["tools/a", "tools/b", "tools/wing/c", "tools/wing/d"];
  const tasks = planTasks(files, { longest: [], shareable: new Set(files) });
  assert.deepEqual(tasks, [files.slice(0, 2), files.slice(2)]);
});

test("a lane takes its own queue's tasks first, then those of others; every task runs once", async () => {
  const begun: string[] = [];
  let running = 0;
  await runInLanes(
    [
      ["a1", "a2"],
      ["b1", "b2", "b3", "b4", "b5"],
    ],
    [0, 1],
    async (task) => {
      begun.push(task);
      assert.ok(++running <= 2);
      await new Promise(setImmediate);
      running--;
    },
  );
  assert.deepEqual(begun.slice(0, 4).toSorted(), ["a1", "a2", "b1", "b2"]);
  assert.deepEqual(begun.toSorted(), ["a1", "a2", "b1", "b2", "b3", "b4", "b5"]);
});

test("one more task runs where there is room, up to the most; none once there is none, and none twice", async () => {
  const tasks = Array.from({ length: 12 }, (_, at) => at);
  const begun: number[] = [];
  const peaks: number[] = [];
  const waits: (() => void)[] = [];
  let [running, looks] = [0, 0];
  const allEnd = (): void => {
    for (const end of waits.splice(0)) end();
  };
  await runInLanes(
    [tasks],
    [0, 0],
    async (task) => {
      begun.push(task);
      peaks.push(++running);
      await new Promise<void>((resolve) => waits.push(resolve));
      running--;
    },
    {
      most: 4,
      hasRoom: async () => {
        await new Promise(setImmediate);
        // The first look finds none; from the sixth on, tasks end.
        if (++looks > 5) allEnd();
        return looks > 1;
      },
    },
  ).catch(assert.ifError);
  assert.deepEqual(begun, tasks);
  assert.equal(Math.max(...peaks), 4);
  assert.deepEqual(peaks.slice(0, 4), [1, 2, 3, 4]);
});

test("the error of a task beside the lanes is that of all", async () => {
  const run = runInLanes(
    [["first", "beside"]],
    [0],
    async (task) => {
      if (task === "beside") throw new Error("lost");
      await new Promise((resolve) => setTimeout(resolve, 20));
    },
    { most: 2, hasRoom: async () => true },
  );
  await assert.rejects(run, /lost/);
});
