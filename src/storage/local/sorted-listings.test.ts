// Tests of the queue of sorted listings: round-robin over users, departures, bounds, and SQLite's order.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Inode, StaleAccessError } from "#storage/contract/inode.ts";
import type { ListPage, ListQuery, ListSort, SortedOrder, Storage } from "#storage/contract/storage.ts";
import { SORTED_SLICE_ROWS } from "./listing-sort.ts";
import { SORTED_LISTINGS_PER_USER, SORTED_LISTINGS_TOTAL } from "./sorted-listings.ts";
import { BY_OWNER, freshStorage, OWNER, refusal } from "./store.fixture.ts";

const NEVER = new AbortController().signal;

async function fill(storage: Storage, parentId: number, count: number): Promise<void> {
  const waits = [];
  for (let index = 0; index < count; index++) {
    const name = `${["Ä", "z", "\u{1f600}", "\uff01", "9"][index % 5]}${(index * 7_919) % count}`;
    const data = Buffer.alloc(index % 3);
    waits.push(storage.createFile({ ...BY_OWNER, parentId, name, data, mtimeMs: 1 + (index % 11) }));
  }
  await Promise.all(waits);
}

function orderOf(storage: Storage, directoryId: number, more: Partial<SortedOrder> = {}): SortedOrder {
  const query = () => {
    const { accessVersion } = storage.root(OWNER) ?? assert.fail();
    return { owner: OWNER, accessVersion, directoryId, limit: 10, pageToken: "", sort: "mtime" as ListSort };
  };
  return { user: "a", signal: NEVER, query, ...more };
}

test("page by page, in every order and from every place, the thread gives what SQLite gives (D13)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  // Slices that end anywhere, the last one full.
  await fill(storage, parentId, SORTED_SLICE_ROWS);
  const { inode: shared } = await storage.createFile({
    ...BY_OWNER,
    parentId,
    name: "m",
    data: Buffer.alloc(2),
    mtimeMs: 3,
  });
  await storage.shares.grant({ ...BY_OWNER, inodeId: shared.id, username: "bob@example.com" });
  const order = fc.constantFrom<ListSort>("size", "size-desc", "mtime", "mtime-desc");
  const run = fc.asyncProperty(order, fc.integer({ min: 1, max: 1_000 }), async (sort, limit) => {
    let pageToken: string | undefined = "";
    for (let pages = 0; pageToken !== undefined && pages < 30; pages++) {
      const query = { limit, pageToken, sort };
      const expected: ListPage = storage.list(parentId, query);
      const base = orderOf(storage, parentId);
      const found = await storage.listSorted({ ...base, query: () => ({ ...base.query(), ...query }) });
      assert.deepEqual(found, expected);
      pageToken = expected.nextPageToken;
    }
  });
  await fc.assert(run, { numRuns: 12, endOnFailure: true });
});

test("what an exclusion keeps from a user is on none of that user's pages, and on those of others; shares of entries are told (D13)", async (context) => {
  const { storage, rootDirectoryId } = await freshStorage(context);
  const { inode: folder } = await storage.createDirectory({
    ...BY_OWNER,
    parentId: rootDirectoryId,
    name: "d",
  });
  await fill(storage, folder.id, SORTED_SLICE_ROWS + 20);
  const [bob, carol] = ["bob@example.com", "carol@example.com"];
  const base = orderOf(storage, folder.id);
  const now = () => ({ ...BY_OWNER, accessVersion: base.query().accessVersion });
  for (const username of [bob, carol]) await storage.shares.grant({ ...now(), inodeId: folder.id, username });
  const all: Inode[] = [];
  for (let pageToken: string | undefined = ""; pageToken !== undefined; ) {
    const page: ListPage = storage.list(folder.id, { limit: 1_000, pageToken, sort: "name" });
    all.push(...page.entries);
    pageToken = page.nextPageToken;
  }
  const kept = all.filter((_, index) => index % 3 === 0).slice(0, 40);
  for (const { id: inodeId } of kept) {
    await storage.shares.revoke({ ...now(), inodeId, username: bob });
  }
  const hidden = new Set(kept.map(({ id }) => id));
  for (const sort of ["size", "size-desc", "mtime", "mtime-desc"] as const) {
    for (const hiddenFrom of [bob, carol, undefined]) {
      const ids: number[] = [];
      for (let pageToken: string | undefined = ""; pageToken !== undefined; ) {
        const query: ListQuery = { limit: 100, pageToken, sort, hiddenFrom };
        const page: ListPage = await storage.listSorted({
          ...base,
          query: () => ({ ...base.query(), ...query }),
        });
        assert.deepEqual(page, storage.list(folder.id, query));
        ids.push(...page.entries.map(({ id }) => id));
        pageToken = page.nextPageToken;
      }
      const expected = all.map(({ id }) => id).filter((id) => hiddenFrom !== bob || !hidden.has(id));
      assert.deepEqual(
        ids.toSorted((a, b) => a - b),
        expected.toSorted((a, b) => a - b),
      );
    }
  }
  const query = () => ({ ...base.query(), limit: 1_000 });
  const { own } = await storage.listSorted({ ...base, query });
  assert.ok(own.size > 0);
  assert.deepEqual([...own.values()][0], { shared: [], excluded: [bob] });
});

test("users take turns: one who asks for one page is not behind all pages of another", async (context) => {
  const { storage, rootDirectoryId } = await freshStorage(context);
  await fill(storage, rootDirectoryId, SORTED_SLICE_ROWS);
  const ended: string[] = [];
  const ask = (user: string): Promise<unknown> =>
    storage.listSorted(orderOf(storage, rootDirectoryId, { user })).then(() => ended.push(user));
  const greedy = Array.from({ length: SORTED_LISTINGS_PER_USER }, () => ask("greedy"));
  await Promise.all([...greedy, ask("other"), ask("third")]);
  assert.ok(ended.indexOf("other") <= 2, ended.join());
  assert.ok(ended.indexOf("third") <= 3, ended.join());
});

test("whose place has changed, who has left, and what is no directory are told, and give their place on", async (context) => {
  const { storage, rootDirectoryId } = await freshStorage(context);
  await fill(storage, rootDirectoryId, 30);
  const base = orderOf(storage, rootDirectoryId);
  const ask = (order: Partial<SortedOrder>): Promise<ListPage> => storage.listSorted({ ...base, ...order });
  const query = (more: object) => () => ({ ...base.query(), ...more });
  await assert.rejects(ask({ query: query({ accessVersion: 7 }) }), StaleAccessError);
  await assert.rejects(ask({ query: query({ owner: "nobody@example.com" }) }), StaleAccessError);
  await assert.rejects(ask({ query: query({ directoryId: 1 }) }), refusal("NO_SUCH_PATH"));
  const file = storage.list(rootDirectoryId, base.query()).entries[0]?.id ?? 0;
  await assert.rejects(ask({ query: query({ directoryId: file }) }), refusal("NOT_DIRECTORY"));
  await assert.rejects(ask({ query: query({ pageToken: "x" }) }), refusal("BAD_ARGUMENT"));
  const thrown = new Error("not any more");
  const throwing = (): never => {
    throw thrown;
  };
  // A refusal at its turn does not stop the next ones.
  const outcomes = await Promise.allSettled([ask({}), ask({ query: throwing }), ask({})]);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled"],
  );
  const left = new AbortController();
  const waits = [ask({ signal: left.signal }), ask({ signal: left.signal }), ask({})];
  left.abort(thrown);
  const ends = await Promise.allSettled(waits);
  assert.deepEqual(
    ends.map(({ status }) => status),
    ["rejected", "rejected", "fulfilled"],
  );
  await assert.rejects(ask({ signal: left.signal }), thrown);
});

test("when all places are taken, who has none takes the last of who has most, and only then is anybody refused", async (context) => {
  const { storage, rootDirectoryId } = await freshStorage(context);
  await fill(storage, rootDirectoryId, 2);
  const all = new AbortController();
  const outcomes = new Map<string, unknown[]>();
  const ask = (user: string): void => {
    const order = orderOf(storage, rootDirectoryId, { user, signal: all.signal });
    storage.listSorted(order).catch((error: unknown) => {
      outcomes.set(user, [...(outcomes.get(user) ?? []), error]);
    });
  };
  const users = SORTED_LISTINGS_TOTAL / SORTED_LISTINGS_PER_USER;
  for (let user = 0; user < users; user++) {
    for (let count = 0; count < SORTED_LISTINGS_PER_USER; count++) ask(`u${user}`);
  }
  ask("newcomer");
  // One runs and the queue is full: u1 is refused, and so is the user whose place the newcomer has taken.
  ask("u1");
  await Promise.resolve();
  await Promise.resolve();
  assert.equal(outcomes.has("newcomer"), false);
  assert.equal([...outcomes.values()].flat().length, 2);
  for (const error of [...outcomes.values()].flat()) assert.ok(refusal("OVERLOADED")(error));
  assert.equal(outcomes.get("u1")?.length, 1);
  all.abort(new Error("enough"));
});

test("a store that is closed refuses what waits to be sorted, and closes", async (context) => {
  const { storage, rootDirectoryId } = await freshStorage(context);
  await fill(storage, rootDirectoryId, 30);
  const waits = Promise.allSettled(
    Array.from({ length: 5 }, () => storage.listSorted(orderOf(storage, rootDirectoryId))),
  );
  await storage.close();
  for (const outcome of await waits) {
    assert.ok(outcome.status === "fulfilled" || refusal("STORAGE_FAILED")(outcome.reason as Error));
  }
  await assert.rejects(storage.listSorted(orderOf(storage, rootDirectoryId)), refusal("STORAGE_FAILED"));
});
