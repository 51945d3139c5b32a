// Tests of several users' changes: turns of users, and the order within one user.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Change, ChangeContext } from "#storage/contract/inode.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { STORAGE_BATCH_COMMANDS, STORAGE_SHARED_BATCH_COMMANDS } from "#storage/writer/write-queue.ts";
import { BY_OWNER, freshStorage } from "./store.fixture.ts";

const GREEDY_CHANGES = 4 * STORAGE_BATCH_COMMANDS;

interface Users {
  greedy(count: number): Promise<Change>[];
  modest(): Promise<Change>;
}

async function twoUsers(context: TestContext): Promise<Users> {
  const { storage, rootDirectoryId } = await freshStorage(context);
  const { directoryId } = await storage.createRoot({ owner: "bob@example.com", rootId: "01BOB" });
  const bob = { owner: "bob@example.com", by: "bob@example.com", accessVersion: 1 };
  let made = 0;
  const make = (by: ChangeContext, parentId: Parameters<Storage["createDirectory"]>[0]["parentId"]) =>
    storage.createDirectory({ ...by, parentId, name: `d${made++}` });
  return {
    greedy: (count) => Array.from({ length: count }, () => make(BY_OWNER, rootDirectoryId)),
    modest: () => make(bob, directoryId),
  };
}

test("who changes one thing waits for a few of another's many, while both change something", async (context) => {
  const users = await twoUsers(context);
  // Both users are known to be active.
  await Promise.all([...users.greedy(1), users.modest()]);
  let done = 0;
  const changes = users.greedy(GREEDY_CHANGES);
  for (const change of changes) void change.then(() => done++);
  await users.modest();
  assert.ok(done <= 3 * STORAGE_SHARED_BATCH_COMMANDS, `${done} of another's were done first`);
  await Promise.all(changes);
});

test("one user's changes are done in the order of their coming, however many there are", async (context) => {
  const users = await twoUsers(context);
  const order: number[] = [];
  const changes = users.greedy(GREEDY_CHANGES);
  for (const [at, change] of changes.entries()) void change.then(() => order.push(at));
  await Promise.all([...changes, users.modest()]);
  assert.deepEqual(
    order,
    changes.map((_, at) => at),
  );
});
