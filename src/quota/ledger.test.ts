// The ledger under parallel writers: no byte over a quota or into the reserve, and no reservation left over.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isGroveError } from "#base/errors.ts";
import { added, refusal, usage, world } from "./ledger.fixture.ts";
import type { Holding } from "./ledger.ts";

test("trash and staging count as used (D14, D16)", () => {
  const { ledger } = world(100n);
  const holding = ledger.open({ owner: "a", usage: usage(40, 30, 20) });
  assert.throws(() => holding.reserve(11n), refusal("QUOTA_EXCEEDED"));
  holding.reserve(10n);
  holding.release();
});

test("a create looks at the used size, a reservation at used and reserved (spec 4.6.1, D16)", () => {
  const { ledger } = world(100n);
  const upload = ledger.open({ owner: "a", usage: usage(99) });
  upload.reserve(1n);
  const create = ledger.open({ owner: "a", usage: usage(99) });
  create.claimInodes({ creates: 1 });
  create.reserve(0n);
  assert.throws(() => create.reserve(1n), refusal("QUOTA_EXCEEDED"));
  upload.settle(added(1));
  create.release();
  const late = ledger.open({ owner: "a", usage: usage(100) });
  assert.throws(() => late.claimInodes({ creates: 1 }), refusal("QUOTA_EXCEEDED"));
  late.release();
});

test("a refusal names the numbers behind it (D1)", () => {
  const { ledger } = world(100n);
  const holding = ledger.open({ owner: "a@b.c", usage: usage(40, 30) });
  assert.throws(
    () => holding.reserve(50n),
    (error: unknown) => {
      assert.ok(isGroveError(error, "QUOTA_EXCEEDED"));
      assert.equal(error.message, "storage quota exceeded");
      assert.deepEqual(error.metadata, {
        used: "70",
        reserved: "0",
        quota: "100",
        requested: "50",
        trash_bytes: "30",
        staging_bytes: "0",
        root_owner: "a@b.c",
      });
      return true;
    },
  );
  holding.release();
});

test("a refusal tells what is in the trash and staged now, also while an upload of before is under way (D1)", () => {
  const { ledger } = world(100n);
  const upload = ledger.open({ owner: "a", usage: usage(70) });
  upload.reserve(10n);
  ledger.open({ owner: "a", usage: usage(70) }).settle(added(0, 0, { ...usage(30, 40), trashInodes: 1 }));
  upload.staged(7);
  assert.throws(
    () => upload.reserve(50n),
    (error: unknown) => {
      assert.ok(isGroveError(error, "QUOTA_EXCEEDED"));
      const { used, reserved, trash_bytes, staging_bytes } = error.metadata;
      assert.deepEqual([used, reserved, trash_bytes, staging_bytes], ["77", "3", "40", "7"]);
      return true;
    },
  );
  upload.release();
});

test("a lowered quota refuses new bytes only: what is reserved may still be committed (failure A-15)", () => {
  const { state, ledger } = world(100n);
  const upload = ledger.open({ owner: "a", usage: usage(0) });
  upload.reserve(60n);
  state.quota = 10n;
  assert.throws(() => upload.reserve(1n), refusal("QUOTA_EXCEEDED"));
  upload.settle(added(60));
  assert.equal(ledger.openAccounts, 0);
});

test("two users cannot both take the last free bytes; what has reached the disk is not counted twice (D16)", () => {
  const { state, ledger } = world(10_000n, 1_100n);
  const first = ledger.open({ owner: "a", usage: usage(0) });
  const second = ledger.open({ owner: "b", usage: usage(0) });
  first.reserve(60n);
  assert.throws(() => second.reserve(41n), refusal("DISK_RESERVE"));
  state.free -= 60n;
  assert.throws(() => second.reserve(1n), refusal("DISK_RESERVE"));
  first.wrote(60);
  second.reserve(40n);
  assert.throws(() => second.reserve(1n), refusal("DISK_RESERVE"));
  first.settle(added(60));
  second.release();
  assert.equal(ledger.promisedBytes, 0n);
});

test("what is staged is used and no longer reserved, never both, and what is dropped again is free (D16)", () => {
  const { ledger } = world(100n);
  const upload = ledger.open({ owner: "a", usage: usage(10) });
  upload.reserve(60n);
  const other = ledger.open({ owner: "a", usage: usage(10) });
  const freeIs = (bytes: bigint): void => {
    assert.throws(() => other.reserve(bytes + 1n), refusal("QUOTA_EXCEEDED"));
    const probe = ledger.open({ owner: "a", usage: usage(10) });
    probe.reserve(bytes);
    probe.release();
  };
  freeIs(30n);
  upload.staged(1);
  assert.equal(upload.usedBytes, 11n);
  freeIs(30n);
  upload.staged(39);
  assert.equal(upload.usedBytes, 50n);
  freeIs(30n);
  upload.staged(-40);
  assert.equal(upload.usedBytes, 10n);
  // Bytes that were staged and dropped are not reserved anew.
  freeIs(70n);
  upload.staged(25);
  freeIs(65n);
  // Staging beyond the reserved bytes makes no room for others.
  other.reserve(60n);
  assert.throws(() => other.reserve(6n), refusal("QUOTA_EXCEEDED"));
  other.reserve(5n);
  upload.release();
  assert.throws(() => other.reserve(1n), refusal("QUOTA_EXCEEDED"));
  assert.equal(other.usedBytes, 35n);
  other.release();
  assert.equal(ledger.openAccounts, 0);
});

test("an empty create in a full root is refused and asks for no byte (spec 4.6.1, T2)", async () => {
  const { ledger } = world(100n);
  const asksForNothing = (error: unknown): boolean =>
    isGroveError(error, "QUOTA_EXCEEDED") && error.metadata["requested"] === "0";
  const full = { owner: "a", usage: usage(100) };
  const holding = ledger.open(full);
  assert.throws(() => holding.claimInodes({ creates: 1 }), asksForNothing);
  holding.release();
  let ran = 0;
  const run = async () => added(ran++);
  await assert.rejects(ledger.change(full, { creates: 1, addsBytes: 0 }, run), asksForNothing);
  assert.equal(ran, 0);
  await ledger.change(full, { creates: 0, addsBytes: 0 }, run);
  assert.equal(ran, 1);
});

test("a change that is done is in the used size of those that still run (D16)", async () => {
  const { ledger } = world(100n);
  const running = ledger.open({ owner: "a", usage: usage(10) });
  await ledger.change({ owner: "a", usage: usage(10) }, { creates: 1, addsBytes: 20 }, async () => added(20));
  assert.equal(running.usedBytes, 30n);
  running.release();
});

test("what writes nothing goes ahead while others have promised all that is usable (spec 4.6.3, D16)", async () => {
  const { ledger } = world(10_000n, 1_100n);
  const upload = ledger.open({ owner: "a", usage: usage(0) });
  upload.reserve(100n);
  const root = { owner: "b", usage: usage(0) };
  const nothing = async () => added(0);
  await ledger.change(root, { creates: 1, addsBytes: 0 }, nothing);
  await assert.rejects(
    ledger.change(root, { creates: 0, addsBytes: 0, writesBytes: 1 }, nothing),
    refusal("DISK_RESERVE"),
  );
  upload.release();
});

test("each chunk is held against the free space of its moment, even when reserved (spec 4.6.3)", () => {
  const { state, ledger } = world(10_000n, 1_100n);
  const upload = ledger.open({ owner: "a", usage: usage(0) });
  upload.reserve(100n);
  upload.checkChunk(100);
  state.free = 1_099n;
  assert.throws(() => upload.checkChunk(100), refusal("DISK_RESERVE"));
  upload.checkChunk(99);
  state.free = 1_000n;
  assert.throws(() => upload.checkChunk(0), refusal("DISK_RESERVE"));
  upload.release();
  assert.equal(ledger.promisedBytes, 0n);
});

test("a range written over asks the disk for its bytes and the quota for its growth alone (spec 4.6.3)", async () => {
  const { state, ledger } = world(100n, 1_050n);
  const root = { owner: "a", usage: usage(100) };
  const write = (writesBytes: number) =>
    ledger.change(root, { creates: 0, addsBytes: 0, writesBytes }, async () => added(0));
  await write(50);
  await assert.rejects(write(51), refusal("DISK_RESERVE"));
  state.quota = 99n;
  await assert.rejects(write(1), refusal("QUOTA_EXCEEDED"));
  assert.equal(ledger.promisedBytes, 0n);
});

test("a change without a claim works over quota and on a full disk (D14)", async () => {
  const { ledger } = world(10n, 0n);
  const freed = await ledger.change({ owner: "a", usage: usage(50) }, undefined, async () => added(-50));
  assert.equal(freed.usedDeltaBytes, -50);
});

test("a change that fails leaves nothing reserved and nothing used", async () => {
  const { ledger } = world(100n);
  const root = { owner: "a", usage: usage(0) };
  const failing = ledger.change(root, { creates: 1, addsBytes: 100 }, () =>
    Promise.reject(new Error("disk")),
  );
  await assert.rejects(failing, /disk/);
  const again = ledger.open(root);
  again.reserve(100n);
  again.release();
  assert.equal(ledger.promisedBytes, 0n);
  assert.equal(ledger.openAccounts, 0);
});

test("settle and release end a holding once, whatever follows", () => {
  const { ledger } = world(100n);
  const other = ledger.open({ owner: "a", usage: usage(0) });
  const holding = ledger.open({ owner: "a", usage: usage(0) });
  holding.reserve(30n);
  holding.settle(added(30));
  holding.settle(added(30));
  holding.release();
  assert.equal(other.usedBytes, 30n);
  other.reserve(70n);
  assert.throws(() => other.reserve(1n), refusal("QUOTA_EXCEEDED"));
  other.release();
  other.release();
  assert.equal(ledger.openAccounts, 0);
});

test("of 200 uploads at once exactly those succeed that fit, to the byte (spec 4.6.2)", async () => {
  const { ledger } = world(1_000n);
  let committed = 0;
  const uploads = Array.from({ length: 200 }, async () => {
    const holding = ledger.open({ owner: "a", usage: usage(committed) });
    try {
      for (let chunk = 0; chunk < 5; chunk++) {
        holding.reserve(5n);
        await Promise.resolve();
      }
      committed += 25;
      // Storage has committed and the answer takes another turn. Both must not count at once.
      await Promise.resolve();
      holding.settle(added(25));
    } finally {
      holding.release();
    }
  });
  const results = await Promise.allSettled(uploads);
  const done = results.filter((result) => result.status === "fulfilled").length;
  assert.equal(committed, done * 25);
  assert.ok(committed <= 1_000);
  const known = await Promise.allSettled(
    Array.from({ length: 200 }, () =>
      ledger.change({ owner: "b", usage: usage(0) }, { creates: 1, addsBytes: 25 }, async () => {
        await Promise.resolve();
        return added(25);
      }),
    ),
  );
  assert.equal(known.filter((result) => result.status === "fulfilled").length, 40);
  assert.equal(ledger.promisedBytes, 0n);
});

type Step = readonly [
  kind: "reserve" | "wrote" | "commit" | "abort" | "delete" | "quota",
  slot: number,
  size: number,
];

test("no interleaving of reserve, write, commit, abort, delete and SetQuota passes the quota or leaks (D16, A-15)", () => {
  const step: fc.Arbitrary<Step> = fc.tuple(
    fc.constantFrom("reserve", "wrote", "commit", "abort", "delete", "quota"),
    fc.nat(7),
    fc.nat(60),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const { state, ledger } = world(100n, 1_250n);
      const model = {
        committed: [0, 0],
        open: new Map<number, { holding: Holding; got: number; onDisk: number }>(),
      };
      const rootOf = (slot: number) => slot % 2;
      const begin = (slot: number) =>
        ledger.open({ owner: `user${rootOf(slot)}`, usage: usage(model.committed[rootOf(slot)] ?? 0) });
      const allowedBefore = (root: number) =>
        [...model.open]
          .filter(([slot]) => rootOf(slot) === root)
          .reduce((sum, [, upload]) => sum + upload.got, 0);
      for (const [kind, slot, size] of steps) {
        const root = rootOf(slot);
        const upload = model.open.get(slot);
        if (kind === "reserve") {
          const current = upload ?? { holding: begin(slot), got: 0, onDisk: 0 };
          model.open.set(slot, current);
          const before = (model.committed[root] ?? 0) + allowedBefore(root);
          const promised = ledger.promisedBytes;
          try {
            current.holding.reserve(BigInt(size));
            current.got += size;
            assert.ok(BigInt(before + size) <= state.quota || size === 0);
            assert.ok(state.free - promised - BigInt(size) >= 1_000n || size === 0);
          } catch (error) {
            if (isGroveError(error, "QUOTA_EXCEEDED")) assert.ok(BigInt(before + size) > state.quota);
            else if (isGroveError(error, "DISK_RESERVE"))
              assert.ok(state.free - promised - BigInt(size) < 1_000n);
            else throw error;
          }
        } else if (kind === "wrote" && upload !== undefined) {
          const bytes = Math.min(size, upload.got - upload.onDisk);
          upload.onDisk += bytes;
          state.free -= BigInt(bytes);
          upload.holding.wrote(bytes);
        } else if (kind === "commit" && upload !== undefined) {
          state.free -= BigInt(upload.got - upload.onDisk);
          model.committed[root] = (model.committed[root] ?? 0) + upload.got;
          upload.holding.settle(added(upload.got));
          model.open.delete(slot);
        } else if (kind === "abort" && upload !== undefined) {
          state.free += BigInt(upload.onDisk);
          upload.holding.release();
          model.open.delete(slot);
        } else if (kind === "delete") {
          const freed = Math.min(size, model.committed[root] ?? 0);
          const holding = begin(slot);
          model.committed[root] = (model.committed[root] ?? 0) - freed;
          state.free += BigInt(freed);
          holding.settle(added(-freed));
        } else if (kind === "quota") {
          state.quota = BigInt(size * 3);
        }
        const outstanding = [...model.open.values()].reduce((sum, item) => sum + item.got - item.onDisk, 0);
        assert.equal(ledger.promisedBytes, BigInt(outstanding));
        assert.ok(state.free >= 1_000n, "the reserve is never touched");
      }
      for (const { holding } of model.open.values()) holding.release();
      assert.equal(ledger.promisedBytes, 0n);
      assert.equal(ledger.openAccounts, 0);
    }),
    { numRuns: 500 },
  );
});
