// Tests leases on hand-moved clocks: sleep, outages of the database, late answers, and random runs of all of
// them.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Clock, ManualClock } from "#base/clock.ts";
import { LeaseHolder } from "./lease-holder.ts";
import { LeaseWatch, type SeenInstance, SHARED_WATCH_MS } from "./lease-watch.ts";

/** Lets promises that are settled call back. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 250) {
    clock.advance(250);
    await settle();
  }
}

function holder(clock: Clock, renew: () => Promise<boolean>): { lease: LeaseHolder; ends: () => number } {
  let ends = 0;
  const lease = new LeaseHolder({ clock, renew, ended: () => ends++ });
  lease.start(lease.now());
  return { lease, ends: () => ends };
}

test("a lease goes on while it is renewed, and reads end two seconds before it", async () => {
  const clock = new ManualClock();
  let isThere = true;
  const { lease, ends } = holder(clock, () =>
    isThere ? Promise.resolve(true) : Promise.reject(new Error("away")),
  );
  await pass(clock, 60_000);
  assert.deepEqual([lease.mayRead, lease.isHeld], [true, true]);
  isThere = false;
  await pass(clock, 8_000);
  assert.deepEqual([lease.mayRead, lease.isHeld, ends()], [false, true, 0]);
  await pass(clock, 2_250);
  assert.deepEqual([lease.mayRead, lease.isHeld, ends()], [false, false, 1]);
  isThere = true;
  await pass(clock, 20_000);
  assert.deepEqual([lease.mayRead, ends()], [false, 1]);
});

test("a lease counts from before its renewal was asked for, and a machine's sleep counts", async () => {
  const clock = new ManualClock();
  const answer = Promise.withResolvers<boolean>();
  const answers = [answer.promise];
  const { lease } = holder(clock, () => answers.pop() ?? new Promise<boolean>(() => undefined));
  await pass(clock, 7_000);
  answer.resolve(true);
  await pass(clock, 250);
  // Asked for after three seconds, answered after seven.
  assert.equal(lease.mayRead, true);
  await pass(clock, 4_000);
  assert.equal(lease.mayRead, false);

  const other = holder(clock, () => Promise.resolve(true));
  clock.sleep(9_000);
  assert.deepEqual([other.lease.mayRead, other.lease.isHeld], [false, true]);
  clock.sleep(2_000);
  assert.equal(other.lease.isHeld, false);
});

test("a lease that others have ended does not go on", async () => {
  const clock = new ManualClock();
  const { lease, ends } = holder(clock, () => Promise.resolve(false));
  await pass(clock, 3_250);
  assert.deepEqual([lease.mayRead, lease.isHeld, ends()], [false, false, 1]);
});

test("each process is watched for its own lease, whatever the watcher's is", async () => {
  const clock = new ManualClock();
  const watch = new LeaseWatch(clock);
  const ask = (): Promise<SeenInstance[]> =>
    Promise.resolve([
      { id: "short", beat: 5, leaseMs: 3_000 },
      { id: "long", beat: 5, leaseMs: 20_000 },
    ]);
  const foundAtMs = new Map<string, number>();
  const begunAtMs = clock.steadyMs();
  while (foundAtMs.size < 2) {
    clock.advance(SHARED_WATCH_MS);
    for (const { id } of await watch.look(ask)) {
      if (!foundAtMs.has(id)) foundAtMs.set(id, clock.steadyMs() - begunAtMs);
    }
  }
  assert.deepEqual(Object.fromEntries(foundAtMs), { short: 4_000, long: 21_000 });
});

test("a process that moves no more is found after ten seconds, and an outage of the database ends none", async () => {
  const clock = new ManualClock();
  const watch = new LeaseWatch(clock);
  let beat = 1;
  const ask = (): Promise<SeenInstance[]> =>
    Promise.resolve([
      { id: "still", beat: 5 },
      { id: "moves", beat: beat++ },
    ]);
  const begunAtMs = clock.steadyMs();
  let dead: SeenInstance[] = [];
  while (dead.length === 0) {
    clock.advance(SHARED_WATCH_MS);
    dead = await watch.look(ask);
  }
  assert.deepEqual(dead, [{ id: "still", beat: 5 }]);
  assert.equal(clock.steadyMs() - begunAtMs, 11_000);
  // Nobody could renew while the database was away, this machine asleep, or an answer under way.
  clock.advance(3_000);
  assert.deepEqual(await watch.look(ask), []);
  clock.advance(1_000);
  clock.sleep(3_000);
  assert.deepEqual(await watch.look(ask), []);
  for (let second = 0; second < 9; second++) {
    clock.advance(1_000);
    assert.deepEqual(await watch.look(ask), []);
  }
  await assert.rejects(watch.look(() => Promise.reject(new Error("away"))));
  const slow = async (): Promise<SeenInstance[]> => {
    clock.advance(2_000);
    return ask();
  };
  assert.deepEqual(await watch.look(slow), []);
});

/** Milliseconds to the database and back, and what happens on the way. */
interface Way {
  readonly there: number;
  readonly back: number;
  readonly fate: "fine" | "lost there" | "lost back" | "asleep";
}

test("in random runs no process reads once another has taken its roots (leases)", async () => {
  const way = fc.record({
    there: fc.integer({ min: 0, max: 1_000 }),
    back: fc.oneof(fc.integer({ min: 0, max: 500 }), fc.integer({ min: 0, max: 9_000 })),
    fate: fc.constantFrom<Way["fate"][]>("fine", "fine", "lost there", "lost there", "lost back", "asleep"),
  });
  let takeOvers = 0;
  const run = fc.asyncProperty(fc.array(way, { minLength: 40, maxLength: 40 }), async (ways) => {
    const clock = new ManualClock();
    // One process sleeps while the other one's time goes on.
    let sleptMs = 0;
    const holderClock: Clock = {
      wallMs: () => clock.wallMs(),
      steadyMs: () => clock.steadyMs() - sleptMs,
      bootMs: () => clock.steadyMs(),
      after: (ms, callback) => clock.after(ms, callback),
      every: (ms, callback) => clock.every(ms, callback),
    };
    const row = { beat: 1, isEnded: false };
    const begunAtMs = clock.steadyMs();
    // One fate for some seconds: what fails often fails again at once.
    const wayNow = (): Way => ways[Math.floor((clock.steadyMs() - begunAtMs) / 4_000) % ways.length] as Way;
    const wait = (ms: number): Promise<void> =>
      new Promise((resolve) => {
        if (ms < 1) resolve();
        else clock.after(ms, resolve);
      });
    const renew = async (): Promise<boolean> => {
      const { there, back, fate } = wayNow();
      await wait(there);
      if (fate === "lost there") throw new Error("lost");
      const isDone = !row.isEnded;
      if (isDone) row.beat++;
      await wait(back);
      if (fate === "asleep") sleptMs += 5_000;
      if (fate === "lost back") throw new Error("lost");
      return isDone;
    };
    const { lease } = holder(holderClock, renew);
    const watch = new LeaseWatch(clock);
    const stopped = new AbortController();
    const watching = (async () => {
      while (!stopped.signal.aborted && !row.isEnded) {
        await wait(SHARED_WATCH_MS);
        const dead = await watch.look(async () => {
          await wait(wayNow().there / 4);
          const seen = [{ id: "one", beat: row.beat }];
          await wait(wayNow().there / 2);
          return row.isEnded ? [] : seen;
        });
        if (dead[0]?.beat === row.beat) row.isEnded = true;
      }
    })();
    for (let step = 0; step < 400; step++) {
      clock.advance(250);
      await settle();
      assert.ok(!(row.isEnded && lease.mayRead), `it reads after ${step} steps`);
    }
    if (row.isEnded) takeOvers++;
    stopped.abort();
    await pass(clock, 10_000);
    await watching;
  });
  await fc.assert(run, { numRuns: 150, endOnFailure: true });
  assert.ok(takeOvers > 0, "nothing was taken over");
});
