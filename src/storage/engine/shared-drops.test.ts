// Tests of drops whose root is elsewhere by now: a place that waits for one would never come free.
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { type ErrorCode, GroveError } from "#base/errors.ts";
import { silentLogger } from "#base/log.ts";
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import { COPIES_PER_USER, CopyRunner, type CopyRunnerDeps } from "#storage/local/copy-runner.ts";
import { refusal } from "#storage/local/store.fixture.ts";
import { SharedDrops } from "./shared-drops.ts";

const dropsOf = (isHolder: (number: number) => boolean): SharedDrops =>
  new SharedDrops({
    clock: systemClock,
    logger: silentLogger,
    isHolder: async (number) => isHolder(number),
  });

/** Copies whose root leaves right after their beginning. */
function copies(drops: SharedDrops, left: ErrorCode[], ops: string[]): CopyRunner {
  const submit = ({ op }: { readonly op: string }): Promise<unknown> => {
    ops.push(op);
    if (op === "beginCopy")
      return Promise.resolve({ job: { bytes: 1, inodes: 1, frames: [{}], list: null } });
    return Promise.reject(new GroveError(left[Number(op === "dropCopy")] ?? "WRONG_NODE", "it has left"));
  };
  const queue = { submit } as unknown as CopyRunnerDeps["queue"];
  return new CopyRunner({ queue, drops, nowMs: () => 0 });
}

for (const code of ["WRONG_NODE", "NO_SUCH_PATH"] as const) {
  test(`a copy whose drop is answered ${code} gives its place back`, { timeout: 60_000 }, async () => {
    const ops: string[] = [];
    const runner = copies(
      dropsOf(() => false),
      ["WRONG_NODE", code],
      ops,
    );
    const target = {
      owner: "a",
      by: "a",
      accessVersion: undefined,
      sourceId: 1,
      parentId: 2,
      name: "c",
    } as const;
    for (let at = 0; at <= COPIES_PER_USER; at++) {
      const order = {
        by: "a",
        maxBytes: 9,
        maxInodes: 9,
        mayGoOn: () => undefined,
        target: () => ({ ...target, onConflict: "fail" }) as const,
      };
      await assert.rejects(runner.run(order), refusal("WRONG_NODE"));
    }
    assert.equal(ops.filter((op) => op === "dropCopy").length, COPIES_PER_USER + 1);
  });
}

test("a drop that others keep from its turn is made again", async () => {
  let tries = 0;
  await dropsOf(() => false).run(async () => {
    if (++tries < 3) throw new GroveError("OVERLOADED", "too many");
  }, 1);
  assert.equal(tries, 3);
});

for (const code of ["WRONG_NODE", "NO_SUCH_PATH"] as const) {
  test(`a drop that is answered ${code} is made again while this process holds the root by the database`, async () => {
    let tries = 0;
    let asked = 0;
    const numbers = new Set<number>();
    const isHolder = (number: number): boolean => {
      numbers.add(number);
      // A database that does not answer says nothing about the root.
      if (++asked === 2) throw new Error("no answer");
      return asked < 5;
    };
    await dropsOf(isHolder).run(
      async () => {
        tries++;
        throw new GroveError(code, "it is not here");
      },
      7 * ROOT_STRIDE + 3,
    );
    assert.deepEqual([tries, asked, [...numbers]], [5, 5, [7]]);
  });
}
