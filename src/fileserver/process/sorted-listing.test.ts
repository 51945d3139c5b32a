// Sorting a large directory delays only its own caller, and keeps the order's promises (D13).
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { LIST_SORT_AT_ONCE } from "#fileserver/operations/namespace-operations.ts";
import { SORTED_LISTINGS_PER_USER } from "#storage/local/sorted-listings.ts";
import { assertSound } from "#storage/local/store.fixture.ts";
import { LIST_SORTED_ENTRIES_MAX } from "#storage/metadata/list-page.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { Sort } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { refusal, startTestNode, type TestNode } from "./node.fixture.ts";

const USERS = ["greedy@example.com", "other@example.com"] as const;

/** Entries that the second user's /large has at most: only one user's is sorted for long. */
const OTHERS_LARGE_MAX = 5_000;
/** Whether filled folders were seen to be sound: however many files they hold, they are filled the same way. */
let isSound = false;

/** A node on which each user has the folders /large and /middle and a file /f. */
async function nodeWith(
  context: TestContext,
  large: number,
  middle = LIST_SORT_AT_ONCE + 1,
): Promise<TestNode> {
  const dataFolder = scratchFolder("grove-sorted-");
  const running: TestNode[] = [];
  context.after(async () => {
    for (const node of running) await node.stop();
  });
  const first = await startTestNode({ dataFolder });
  for (const email of USERS) {
    const user = await first.signIn(email);
    await user.call.createDirectory({ path: "/large" });
    await user.call.createDirectory({ path: "/middle" });
    await user.call.createFile({ path: "/f", data: Buffer.alloc(3) });
  }
  await first.stop();
  for (const number of [1, 2]) {
    fill(dataFolder, number, "large", number === 1 ? large : Math.min(large, OTHERS_LARGE_MAX));
    fill(dataFolder, number, "middle", middle);
  }
  if (!isSound) assertSound(dataFolder);
  isSound = true;
  const node = await startTestNode({ dataFolder });
  running.push(node);
  return node;
}

/** Puts empty files into a folder as uploads would: in mixed order, and many with the same time. */
function fill(dataFolder: string, root: number, folder: string, count: number): void {
  const db = new DatabaseSync(join(dataFolder, "inodes.db"));
  const at = `(SELECT id FROM inode WHERE name = '${folder}' AND id / 4294967296 = ${root})`;
  const top = `(SELECT directory_id FROM root WHERE number = ${root})`;
  db.exec(`
    WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${count - 1})
    INSERT INTO inode (id, parent_id, name, kind, size, crc32, version, mtime_ms, ctime_ms, flags, content_id, created_by,
      child_count, tree_inodes, tree_files, height)
    SELECT ${root} * 4294967296 + (SELECT next_id FROM root WHERE number = ${root}) + i, ${at},
      (CASE i % 5 WHEN 0 THEN 'Ä' WHEN 1 THEN 'z' WHEN 2 THEN char(128512) WHEN 3 THEN char(65281) ELSE '9' END) || ((i * 7919) % ${count}),
      0, 0, 0, 1, 1 + (i * 31) % 997, 1, 0, NULL, NULL, 0, 0, 0, 0 FROM n;
    UPDATE inode SET child_count = child_count + ${count}, tree_inodes = tree_inodes + ${count}, tree_files = tree_files + ${count}, height = 1
      WHERE id = ${at};
    UPDATE inode SET tree_inodes = tree_inodes + ${count}, tree_files = tree_files + ${count}, height = 2 WHERE id = ${top};
    UPDATE root SET next_id = next_id + ${count}, file_count = file_count + ${count}, live_inodes = live_inodes + ${count} WHERE number = ${root};
    UPDATE counter SET value = value + ${count} WHERE name = 'inodes';`);
  db.close();
}

test("what others ask for is answered while a user's large directories are being sorted, and theirs in between", async (context) => {
  const node = await nodeWith(context, LIST_SORTED_ENTRIES_MAX);
  const [greedy, other] = [await node.signIn(USERS[0]), await node.signIn(USERS[1])];
  const ended: string[] = [];
  const ask = (what: string, call: Promise<unknown>): Promise<void> => call.then(() => void ended.push(what));
  const order = { path: "/large", sort: Sort.MTIME_DESC };
  const all = Array.from({ length: 8 }, () => ask("greedy", greedy.call.listDir(order)));
  // Once the first is there the rest have begun.
  await all[0];
  const mine = [
    ask("attr", other.call.getAttr({ path: "/f" })),
    ask("by name", other.call.listDir({ path: "/middle" })),
    ask("middle", other.call.listDir({ ...order, path: "/middle" })),
  ];
  await Promise.all([...all, ...mine]);
  const before = (what: string): number =>
    ended.slice(0, ended.indexOf(what)).filter((each) => each === "greedy").length;
  // One was there already, and one more may end at the same moment.
  assert.ok(before("attr") <= 2, ended.join());
  assert.ok(before("by name") <= 2, ended.join());
  assert.ok(before("middle") <= 3, ended.join());
});

test("a user with as many sorted listings under way as one may have is told so, and another is served (D13)", async (context) => {
  const node = await nodeWith(context, OTHERS_LARGE_MAX);
  const [greedy, other] = [await node.signIn(USERS[0]), await node.signIn(USERS[1])];
  const order = { path: "/large", sort: Sort.SIZE, pageSize: 10 };
  const calls = Array.from({ length: SORTED_LISTINGS_PER_USER + 4 }, () => greedy.call.listDir(order));
  const mine = other.call.listDir(order);
  const outcomes = await Promise.allSettled(calls);
  const refused = outcomes.filter(({ status }) => status === "rejected");
  assert.equal(refused.length, 4);
  const again = Array.from({ length: SORTED_LISTINGS_PER_USER }, () => greedy.call.listDir(order));
  const { reason, message } = await refusal(greedy.call.listDir(order));
  assert.equal(reason, "OVERLOADED");
  assert.match(message, /you have 16 sorted listings of large directories under way/);
  assert.equal((await mine).entries.length, 10);
  await Promise.all(again);
  assert.equal((await greedy.call.listDir(order)).entries.length, 10);
});

test("a share that ends while a listing waits ends the listing too, and what comes into the folder then is not shown (D13)", async (context) => {
  const node = await nodeWith(context, 20_000);
  const [owner, sharee] = [await node.signIn(USERS[0]), await node.signIn(USERS[1])];
  await owner.call.share({ path: "/large", user: USERS[1] });
  const order = { root: USERS[0], path: "/large", sort: Sort.SIZE_DESC, pageSize: 1 };
  assert.equal((await sharee.call.listDir(order)).entries.length, 1);
  // Each waits for the one before.
  const waiting = Array.from({ length: 6 }, () => sharee.call.listDir(order));
  const outcomes = Promise.allSettled(waiting);
  await owner.call.unshare({ path: "/large", user: USERS[1] });
  await owner.call.createFile({ path: "/large/secret", data: Buffer.alloc(9) });
  for (const outcome of await outcomes) {
    if (outcome.status === "fulfilled") {
      assert.notEqual(outcome.value.entries[0]?.name, "secret");
      continue;
    }
    assert.equal((await refusal(Promise.reject(outcome.reason as Error))).reason, "NOT_SHARED");
  }
  const mine = await owner.call.listDir({ ...order, root: "" });
  assert.equal(mine.entries[0]?.name, "secret");
});

test("what is taken out of a share is on no sorted page of its user, not even of one that waits meanwhile (D13)", async (context) => {
  const node = await nodeWith(context, 20_000);
  const [owner, sharee] = [await node.signIn(USERS[0]), await node.signIn(USERS[1])];
  await owner.call.share({ path: "/large", user: USERS[1] });
  for (const [name, length] of [
    ["secret", 9],
    ["later", 8],
  ] as const)
    await owner.call.createFile({ path: `/large/${name}`, data: Buffer.alloc(length) });
  const order = { root: USERS[0], path: "/large", sort: Sort.SIZE_DESC, pageSize: 2 };
  const names = async (page: Promise<{ readonly entries: readonly { readonly name: string }[] }>) =>
    (await page).entries.map(({ name }) => name);
  assert.deepEqual(await names(sharee.call.listDir(order)), ["secret", "later"]);
  await owner.call.unshare({ path: "/large/secret", user: USERS[1] });
  assert.equal((await names(sharee.call.listDir(order)))[0], "later");
  // Each waits for the one before.
  const waiting = Array.from({ length: 6 }, () => names(sharee.call.listDir(order)));
  await owner.call.unshare({ path: "/large/later", user: USERS[1] });
  const last = (await Promise.all(waiting)).at(-1) ?? [];
  assert.equal(last.length, 2);
  assert.ok(!last.includes("secret") && !last.includes("later"), last.join());
  assert.deepEqual(await names(owner.call.listDir({ ...order, root: "" })), ["secret", "later"]);
});

test("both sides of the limits: sorted at once and elsewhere the pages are the same, and beyond the most there is only the order by name (D13)", async (context) => {
  const node = await nodeWith(context, LIST_SORTED_ENTRIES_MAX + 1, LIST_SORT_AT_ONCE);
  const user = await node.signIn(USERS[0]);
  const pagesOf = async (path: string, sort: Sort): Promise<readonly string[]> => {
    const names: string[] = [];
    for (let pageToken = "", isEnd = false; !isEnd; isEnd = pageToken === "") {
      const page = await user.call.listDir({ path, sort, pageToken, pageSize: 300 });
      names.push(...page.entries.map(({ name }) => name));
      pageToken = page.nextPageToken;
    }
    return names;
  };
  const few = await pagesOf("/middle", Sort.MTIME);
  assert.equal(few.length, LIST_SORT_AT_ONCE);
  // Last in both orders; with one entry more the folder is sorted in the background.
  await user.call.createFile({ path: "/middle/\u{10ffff}", data: Buffer.alloc(1) });
  assert.deepEqual(await pagesOf("/middle", Sort.MTIME), [...few, "\u{10ffff}"]);
  assert.deepEqual((await pagesOf("/middle", Sort.SIZE)).at(-1), "\u{10ffff}");
  const { reason, message } = await refusal(user.call.listDir({ path: "/large", sort: Sort.SIZE }));
  assert.equal(reason, "BAD_ARGUMENT");
  assert.match(message, /more than 50000 entries is listed by name only/);
  assert.equal((await user.call.listDir({ path: "/large" })).entries.length, 1_000);
  const foreign = await user.call.listDir({ path: "/middle", sort: Sort.SIZE, pageSize: 1 });
  const { nextPageToken: pageToken } = foreign;
  const wrong = await refusal(user.call.listDir({ path: "/middle", sort: Sort.MTIME, pageToken }));
  assert.equal(wrong.reason, "BAD_ARGUMENT");
});
