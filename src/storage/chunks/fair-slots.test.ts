// Tests of round-robin slots: the order of users, both sides of every bound, and waits that are aborted.
import assert from "node:assert/strict";
import { test } from "node:test";
import { FairSlots } from "./fair-slots.ts";

const BOUNDS = { what: "things", slots: 2, slotsPerUser: 2, waiting: 100, waitingPerUser: 100 };

/** Operations that end on request, and the order in which they began. */
function held(slots: FairSlots): {
  begun: string[];
  run: (user: string, signal?: AbortSignal) => Promise<void>;
  endFirst: () => Promise<void>;
} {
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  return {
    begun,
    run: (user, signal) =>
      slots.run(
        user,
        () => {
          begun.push(user);
          return new Promise((resolve) => ends.push(resolve));
        },
        signal,
      ),
    async endFirst() {
      ends.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

test("whoever has many waiting gets every second slot while another waits, and all of them otherwise", async () => {
  const slots = new FairSlots(BOUNDS);
  const { begun, run, endFirst } = held(slots);
  const all = [...Array.from({ length: 8 }, () => run("ada")), run("bob"), run("bob"), run("eve")];
  for (let ended = 0; ended < all.length; ended++) await endFirst();
  await Promise.all(all);
  assert.equal(begun.join(" "), "ada ada ada bob eve ada bob ada ada ada ada");
  assert.ok(slots.isIdle);
});

test("a user has no more slots than the share, also when others are free", async () => {
  const slots = new FairSlots({ ...BOUNDS, slots: 3 });
  const { begun, run, endFirst } = held(slots);
  const all = [run("ada"), run("ada"), run("ada")];
  assert.deepEqual(begun, ["ada", "ada"]);
  assert.equal(slots.isIdle, false);
  const bob = run("bob");
  assert.deepEqual(begun, ["ada", "ada", "bob"]);
  for (let ended = 0; ended < 4; ended++) await endFirst();
  await Promise.all([...all, bob]);
  assert.ok(slots.isIdle);
});

test("one more than may wait is refused: of a user as that user's own doing, of all as the node's load", async () => {
  const slots = new FairSlots({ what: "things", slots: 1, slotsPerUser: 1, waiting: 3, waitingPerUser: 2 });
  const { run, endFirst } = held(slots);
  const all = [run("ada"), run("ada"), run("ada")];
  await assert.rejects(run("ada"), { code: "RATE_LIMITED" });
  all.push(run("bob"));
  await assert.rejects(run("bob"), { code: "OVERLOADED" });
  for (let ended = 0; ended < all.length; ended++) await endFirst();
  await Promise.all(all);
  const again = run("ada");
  assert.equal(slots.isIdle, false);
  await endFirst();
  await again;
  assert.ok(slots.isIdle);
});

test("whoever leaves while waiting takes no slot and hears why", async () => {
  const slots = new FairSlots({ ...BOUNDS, slots: 1 });
  const { begun, run, endFirst } = held(slots);
  const gone = new AbortController();
  const [first, left, last] = [run("ada"), run("bob", gone.signal), run("eve")];
  gone.abort(new Error("the caller has left"));
  await assert.rejects(left, /the caller has left/);
  await assert.rejects(run("bob", gone.signal), /the caller has left/);
  await endFirst();
  await endFirst();
  await Promise.all([first, last]);
  assert.deepEqual(begun, ["ada", "eve"]);
  assert.ok(slots.isIdle);
});

test("an operation that fails gives its slot on", async () => {
  const slots = new FairSlots({ ...BOUNDS, slots: 1 });
  const failing = slots.run("ada", () => Promise.reject(new Error("no")));
  const next = slots.run("bob", () => Promise.resolve("yes"));
  await assert.rejects(failing, /no/);
  assert.equal(await next, "yes");
  assert.ok(slots.isIdle);
});

test("so many run at once, the others in the order of their coming, and a slot that is free is taken again", async () => {
  const pool = new FairSlots({ what: "things", slots: 2 });
  const begun: number[] = [];
  const ends = Array.from({ length: 6 }, () => Promise.withResolvers<number>());
  const run = (at: number): Promise<number> =>
    pool.run("u", () => {
      begun.push(at);
      return ends[at]!.promise;
    });
  const first = [0, 1, 2, 3].map(run);
  assert.deepEqual(begun, [0, 1]);
  ends[1]!.resolve(11);
  assert.equal(await first[1], 11);
  assert.deepEqual(begun, [0, 1, 2]);
  ends[0]!.reject(new Error("broken"));
  await assert.rejects(first[0]!, /broken/);
  assert.deepEqual(begun, [0, 1, 2, 3]);
  ends[2]!.resolve(12);
  ends[3]!.resolve(13);
  assert.deepEqual(await Promise.all(first.slice(2)), [12, 13]);
  const later = [4, 5].map(run);
  assert.deepEqual(begun, [0, 1, 2, 3, 4, 5]);
  ends[4]!.resolve(14);
  ends[5]!.resolve(15);
  assert.deepEqual(await Promise.all(later), [14, 15]);
});
