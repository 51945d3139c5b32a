// Claims of inodes under parallel changes: none over a limit, none left over, one rule for all creates.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isGroveError } from "#base/errors.ts";
import { added, refusal, usage, world } from "./ledger.fixture.ts";

test("what is made is reserved, so that changes at the same time never pass the inode limit together", () => {
  const { state, ledger } = world(100n);
  state.inodes = 10;
  const root = { owner: "a", usage: { ...usage(0), liveInodes: 5, trashInodes: 2 } };
  const first = ledger.open(root);
  const second = ledger.open(root);
  first.claimInodes({ creates: 2 });
  assert.throws(() => second.claimInodes({ creates: 2 }), refusal("INODE_LIMIT"));
  second.claimInodes({ creates: 1 });
  assert.deepEqual([first.inodes, second.inodes], [2, 1]);
  // A claim is not counted twice, and its unused part is free again.
  first.claimInodes({ creates: 2 });
  first.settle(added(0, 1));
  const third = ledger.open(root);
  third.claimInodes({ creates: 1 });
  assert.throws(() => third.claimInodes({ creates: 2 }), refusal("INODE_LIMIT"));
  second.settle(added(0, 1));
  third.release();
  assert.equal(ledger.openAccounts, 0);
});

test("deletes make room at once, also while other changes are under way", () => {
  const { state, ledger } = world(100n);
  state.inodes = 3;
  const root = { owner: "a", usage: { ...usage(0), liveInodes: 3 } };
  const create = ledger.open(root);
  assert.throws(() => create.claimInodes({ creates: 1 }), refusal("INODE_LIMIT"));
  const remove = ledger.open(root);
  remove.settle(added(0, -2));
  create.claimInodes({ creates: 2 });
  assert.throws(() => create.claimInodes({ creates: 3 }), refusal("INODE_LIMIT"));
  create.release();
});

test("a refusal for inodes names the numbers, and comes after the one for the quota (D1, D16)", () => {
  const { state, ledger } = world(100n);
  state.inodes = 5;
  const over = { ...usage(0), liveInodes: 5, trashInodes: 4 };
  const holding = ledger.open({ owner: "a@b.c", usage: over });
  assert.throws(
    () => holding.claimInodes({ creates: 2 }),
    (error: unknown) => {
      assert.ok(isGroveError(error, "INODE_LIMIT"));
      assert.equal(error.message, "inode limit reached: 9 of 5 files and folders are there, trash included");
      assert.deepEqual(error.metadata, {
        inodes: "9",
        reserved: "0",
        inode_limit: "5",
        requested: "2",
        trash_inodes: "4",
        root_owner: "a@b.c",
      });
      return true;
    },
  );
  holding.release();
  const full = ledger.open({ owner: "a@b.c", usage: { ...over, liveBytes: 100 } });
  assert.throws(() => full.claimInodes({ creates: 1 }), refusal("QUOTA_EXCEEDED"));
  // A row of the trash alone is no new file of the caller's (spec 4.6.1), but it counts as an inode.
  assert.throws(() => full.claimInodes({ creates: 0, keeps: 1 }), refusal("INODE_LIMIT"));
  full.claimInodes({ creates: 0 });
  full.release();
});

test("bytes that an upload has staged itself do not keep it from being created (spec 4.6.1)", () => {
  const { ledger } = world(100n);
  const holding = ledger.open({ owner: "a", usage: usage(40, 0, 60) });
  assert.throws(() => holding.claimInodes({ creates: 1 }), refusal("QUOTA_EXCEEDED"));
  holding.claimInodes({ creates: 1 }, { ownBytes: 1n });
  holding.release();
});

test("a place that was a file's when it was claimed and is empty now is claimed by the rule for what is made (spec 4.6.1)", () => {
  const { ledger } = world(100n);
  const holding = ledger.open({ owner: "a", usage: usage(100) });
  holding.claimInodes({ creates: 0, keeps: 1 });
  assert.throws(() => holding.claimInodes({ creates: 1 }), refusal("QUOTA_EXCEEDED"));
  holding.release();
});

test("what was claimed is not held against a quota that has filled up since", () => {
  const { ledger } = world(100n);
  const holding = ledger.open({ owner: "a", usage: usage(99) });
  holding.claimInodes({ creates: 1 });
  const other = ledger.open({ owner: "a", usage: usage(99) });
  other.settle(added(1, 0));
  holding.claimInodes({ creates: 1 });
  assert.throws(() => holding.claimInodes({ creates: 2 }), refusal("QUOTA_EXCEEDED"));
  holding.release();
});
