// The list of users: merge, both orders, pages, and defaults for unreported users (D5, spec 5.9).
import assert from "node:assert/strict";
import { test } from "node:test";
import { stringify64 } from "#base/json64.ts";
import { DEFAULT_QUOTA_BYTES, POLL_INTERVAL_MS, U64_MAX } from "#base/limits.ts";
import { silentLogger } from "#base/log.ts";
import type { RootPlace } from "#metaserver/directory/directory.ts";
import { type UserRow, userList } from "#wire/webapi/user.ts";
import { nodeReading, testCluster } from "./cluster-state.fixture.ts";
import type { NodeReading, UserDetail } from "./cluster-state.ts";
import { HomeNodes } from "./home-nodes.ts";
import { UserList } from "./user-list.ts";
import { usersQuery } from "./user-query.ts";

type Said = Readonly<Record<string, { used: bigint; quota?: bigint; detail?: Partial<UserDetail> }>>;

const DETAIL: UserDetail = {
  liveBytes: null,
  trashBytes: null,
  stagingBytes: null,
  fileCount: null,
  inodeCount: null,
  inodeLimit: null,
  inodeLimitExplicit: null,
  lastActiveUnix: null,
  quotaExplicit: null,
  trashExpiresUnix: null,
};

function readingOf(said: Said): NodeReading {
  const users = Object.entries(said);
  return nodeReading({
    perUserStorage: new Map(users.map(([name, { used }]) => [name, used])),
    perUserQuota: new Map(users.flatMap(([name, { quota }]) => (quota === undefined ? [] : [[name, quota]]))),
    perUserDetail: new Map(
      users.flatMap(([name, { detail }]) => (detail === undefined ? [] : [[name, { ...DETAIL, ...detail }]])),
    ),
  });
}

function startList(nodes: readonly string[], roots: RootPlace[] = []) {
  const { clusterState, clock } = testCluster(...nodes);
  const store = { roots, reads: 0, error: undefined as Error | undefined };
  const directory = {
    listRoots: (after?: string) => {
      store.reads++;
      if (store.error !== undefined) return Promise.reject(store.error);
      const sorted = store.roots.toSorted((a, b) => (a.owner < b.owner ? -1 : 1));
      return Promise.resolve(sorted.filter(({ owner }) => owner > (after ?? "")).slice(0, 1_000));
    },
  };
  const homes = new HomeNodes({ clock, directory, log: silentLogger });
  const decided = { locked: new Set<string>(), version: 0, refresh: () => Promise.resolve() };
  const forecasts = new Map<string, number>();
  const users = new UserList({
    clock,
    cluster: clusterState,
    homes,
    decided,
    fullInDays: (name) => forecasts.get(name),
  });
  const page = async (query: object = {}) => {
    const answer: unknown = JSON.parse(String(await users.page(usersQuery.parse(query))));
    // No fields beside the schema's.
    assert.equal(stringify64(userList.strict().parse(answer)), stringify64(answer));
    return userList.parse(answer);
  };
  const names = async (query: object = {}) => (await page(query)).users.map(({ username }) => username);
  const row = async (name: string): Promise<UserRow | undefined> =>
    (await page({ q: name })).users.find(({ username }) => username === name);
  const round = () => clock.advance(POLL_INTERVAL_MS);
  return { clusterState, clock, store, users, page, names, row, round, forecasts };
}

test("a user's row says what the home node reports, exact to 2^64 - 1 (D5, T17)", async () => {
  const { clusterState, row, forecasts } = startList(["a"]);
  const detail = {
    liveBytes: 2n ** 53n + 1n,
    trashBytes: 2n ** 62n,
    stagingBytes: 5n,
    fileCount: 7,
    inodeCount: 9,
    inodeLimit: 20_000_000,
    inodeLimitExplicit: true,
    lastActiveUnix: 1_789_000_000,
    quotaExplicit: true,
    trashExpiresUnix: null,
  };
  const used = 2n ** 53n + 1n + 2n ** 62n + 5n;
  clusterState.answered("a", readingOf({ "bob@example.com": { used, quota: U64_MAX, detail } }));
  forecasts.set("bob@example.com", 12.5);
  assert.deepEqual(await row("bob@example.com"), {
    username: "bob@example.com",
    quota_limit: "18446744073709551615",
    quota_source: "explicit",
    used_bytes: String(used),
    live_bytes: "9007199254740993",
    trash_bytes: "4611686018427387904",
    staging_bytes: 5,
    file_count: 7,
    inode_count: 9,
    inode_limit: 20_000_000,
    inode_limit_source: "explicit",
    usage_percent: 25.04,
    level: "ok",
    locked: false,
    home_node_id: "a",
    home_node_name: "a",
    last_active: 1_789_000_000,
    full_in_days: 12.5,
  });
});

test("no quota and a quota of zero are the default of 16 GiB; an explicit one of 16 GiB stays explicit (spec 2.1, T23)", async () => {
  const { clusterState, row } = startList(["a"]);
  clusterState.answered(
    "a",
    readingOf({
      "none@x": { used: 1n },
      "zero@x": { used: 1n, quota: 0n },
      "same@x": { used: 1n, quota: DEFAULT_QUOTA_BYTES, detail: { quotaExplicit: true } },
      "own@x": { used: 1n, quota: 5n },
    }),
  );
  for (const [name, quota, source] of [
    ["none@x", 17_179_869_184, "default"],
    ["zero@x", 17_179_869_184, "default"],
    ["same@x", 17_179_869_184, "explicit"],
    ["own@x", 5, "explicit"],
  ] as const) {
    const found = await row(name);
    assert.deepEqual([name, found?.quota_limit, found?.quota_source], [name, quota, source]);
  }
});

test("levels are yellow above 80 % and red above 95 %, and a percentage never rounds up (spec 3.1)", async () => {
  const { clusterState, row } = startList(["a"]);
  const quota = 2n ** 60n;
  const said: Record<string, { used: bigint; quota: bigint }> = {
    "a80@x": { used: 80n, quota: 100n },
    "b80@x": { used: (quota * 80n) / 100n + 1n, quota },
    "c95@x": { used: 95n, quota: 100n },
    "d95@x": { used: (quota * 95n) / 100n + 1n, quota },
    "e99@x": { used: quota - 1n, quota },
    "f100@x": { used: quota, quota },
    "over@x": { used: 300n, quota: 100n },
  };
  clusterState.answered("a", readingOf(said));
  for (const [name, level, percent] of [
    ["a80@x", "ok", 80],
    ["b80@x", "yellow", 80],
    ["c95@x", "yellow", 95],
    ["d95@x", "red", 95],
    ["e99@x", "red", 99.99],
    ["f100@x", "red", 100],
    ["over@x", "red", 300],
  ] as const) {
    const found = await row(name);
    assert.deepEqual([name, found?.level, found?.usage_percent], [name, level, percent]);
  }
});

test("a user whose home node has not reported is pending with the default quota, and keeps the last figures when it falls silent (spec 5.9)", async () => {
  const { clusterState, row, round } = startList(["a"], [{ owner: "new@x", fsId: "a" }]);
  const pending = await row("new@x");
  assert.deepEqual(
    [
      pending?.quota_source,
      pending?.quota_limit,
      pending?.used_bytes,
      pending?.home_node_id,
      pending?.last_active,
    ],
    ["pending", 17_179_869_184, 0, "a", null],
  );
  // A node's first report shows at once, without waiting for a round.
  clusterState.answered("a", readingOf({ "new@x": { used: 9n, quota: 10n } }));
  assert.deepEqual([(await row("new@x"))?.quota_source, (await row("new@x"))?.used_bytes], ["explicit", 9]);
  clusterState.failed("a", "silent");
  round();
  assert.deepEqual([(await row("new@x"))?.quota_source, (await row("new@x"))?.used_bytes], ["explicit", 9]);
});

test("a node cannot speak for another node's users; where the store knows nothing, the first node's word counts (M-05)", async () => {
  const { clusterState, page } = startList(["a", "b"], [{ owner: "bob@x", fsId: "b" }]);
  clusterState.answered("a", readingOf({ "bob@x": { used: 99n, quota: 100n }, "eve@x": { used: 1n } }));
  clusterState.answered("b", readingOf({ "eve@x": { used: 2n } }));
  const { users, total_users } = await page();
  assert.equal(total_users, 2);
  assert.deepEqual(
    users.map(({ username, home_node_id, quota_source, used_bytes }) => [
      username,
      home_node_id,
      quota_source,
      used_bytes,
    ]),
    [
      ["bob@x", "b", "pending", 0],
      ["eve@x", "a", "default", 1],
    ],
  );
});

test("pages follow one another without gap or repetition in both orders, over users that come and go between them (D5)", async () => {
  const { clusterState, page, names, round } = startList(["a", "b"]);
  const said = (from: number, to: number): Said =>
    Object.fromEntries(
      Array.from({ length: to - from }, (_, index) => {
        const number = from + index;
        return [`u${String(number).padStart(3, "0")}@x`, { used: BigInt((number * 37) % 50), quota: 100n }];
      }),
    );
  clusterState.answered("a", readingOf(said(0, 60)));
  clusterState.answered("b", readingOf(said(60, 100)));
  for (const sort of ["name", "usage"]) {
    const all = await names({ sort, limit: 500 });
    assert.equal(all.length, 100);
    const seen: string[] = [];
    let cursor: string | null | undefined;
    do {
      const some = await page({
        sort,
        limit: 7,
        ...(cursor === undefined || cursor === null ? {} : { cursor }),
      });
      assert.equal(some.total_users, 100);
      seen.push(...some.users.map(({ username }) => username));
      cursor = some.next_cursor;
    } while (cursor !== null);
    assert.deepEqual(seen, all);
  }
  const shares = (await page({ sort: "usage", limit: 500 })).users.map(({ usage_percent }) => usage_percent);
  assert.deepEqual(
    shares,
    shares.toSorted((x, y) => y - x),
  );
  const first = await page({ limit: 50 });
  clusterState.answered("a", readingOf(said(30, 60)));
  round();
  const rest = await names({ limit: 500, cursor: first.next_cursor });
  assert.deepEqual(
    rest,
    (await names({ limit: 500 })).filter((name) => name > "u049@x"),
  );
  assert.equal((await page({ limit: 70 })).next_cursor, null);
});

test("q finds a part of a name in any case, and the total counts what it finds", async () => {
  const { clusterState, page, names } = startList(["a"]);
  clusterState.answered(
    "a",
    readingOf({ "bob@x": { used: 1n }, "bobby@x": { used: 2n }, "alice@x": { used: 3n } }),
  );
  const found = await page({ q: "BOB", limit: 1 });
  assert.deepEqual([found.users[0]?.username, found.total_users], ["bob@x", 2]);
  const next = await page({ q: "bob", limit: 1, cursor: found.next_cursor });
  assert.deepEqual([next.users[0]?.username, next.next_cursor], ["bobby@x", null]);
  assert.deepEqual((await page({ q: "__proto__" })).users, []);
  // By the whole name, whoever else has it as a part of theirs.
  assert.deepEqual(await names({ username: "bob@x" }), ["bob@x"]);
  assert.deepEqual(await names({ username: "ob@x" }), []);
  assert.deepEqual(await names({ username: "bob@x", node: "nowhere" }), []);
});

test("node leaves the users of one node, in pages of their own and together with q; of a node that nobody knows there are none", async () => {
  const { clusterState, page, names, users, round } = startList(["a", "b"], [{ owner: "new@x", fsId: "b" }]);
  clusterState.answered(
    "a",
    readingOf({ "bob@x": { used: 1n, quota: 10n }, "alice@x": { used: 3n, quota: 10n } }),
  );
  clusterState.answered(
    "b",
    readingOf({ "bobby@x": { used: 9n, quota: 10n }, "eve@x": { used: 2n, quota: 10n } }),
  );
  assert.deepEqual(await names({ node: "a" }), ["alice@x", "bob@x"]);
  assert.deepEqual(await names({ node: "b", sort: "usage" }), ["bobby@x", "eve@x", "new@x"]);
  const first = await page({ node: "b", sort: "usage", limit: 1 });
  assert.deepEqual([first.total_users, first.users[0]?.home_node_id], [3, "b"]);
  const rest = await page({ node: "b", sort: "usage", cursor: first.next_cursor });
  assert.deepEqual(
    [rest.users.map(({ username }) => username), rest.next_cursor],
    [["eve@x", "new@x"], null],
  );
  assert.deepEqual(await names({ node: "b", q: "BOB" }), ["bobby@x"]);
  assert.deepEqual(await page({ node: "nobody" }), { users: [], total_users: 0, next_cursor: null });
  // Cached pages of one node are not used for another or for all.
  assert.equal((await page({})).total_users, 5);
  assert.notEqual(
    await users.page(usersQuery.parse({ node: "a" })),
    await users.page(usersQuery.parse({ node: "b" })),
  );
  // A user who moved is only in the list of the new node.
  clusterState.answered("a", readingOf({ "alice@x": { used: 3n, quota: 10n } }));
  clusterState.answered("b", readingOf({ "bob@x": { used: 1n, quota: 10n } }));
  round();
  assert.deepEqual(
    [await names({ node: "a" }), await names({ node: "b" })],
    [["alice@x"], ["bob@x", "new@x"]],
  );
});

test("a quota that was set shows at once and stays until a poll that began later tells otherwise", async () => {
  const { clusterState, clock, users, row, round } = startList(["a"]);
  const old = readingOf({ "bob@x": { used: 50n, quota: 100n } });
  clusterState.answered("a", old);
  assert.equal((await row("bob@x"))?.quota_limit, 100);
  users.quotaWasSet("bob@x", { nodeId: "a", quotaBytes: U64_MAX, source: "explicit" });
  assert.equal((await row("bob@x"))?.quota_limit, "18446744073709551615");
  // A poll that was in progress during the change still reports the old quota.
  clock.advance(1_000);
  clusterState.answered("a", old);
  round();
  assert.equal((await row("bob@x"))?.quota_limit, "18446744073709551615");
  // While the node is silent, no newer report replaces the change.
  for (let i = 0; i < 5; i++) round();
  assert.equal((await row("bob@x"))?.quota_limit, "18446744073709551615");
  clusterState.answered("a", readingOf({ "bob@x": { used: 50n, quota: 200n } }));
  round();
  assert.equal((await row("bob@x"))?.quota_limit, 200);
});

test("the store is asked at most every ten seconds, and one that fails leaves the list as it was (spec 4.4)", async () => {
  const { store, names, clock } = startList(["a"], [{ owner: "bob@x", fsId: "a" }]);
  assert.deepEqual(await names(), ["bob@x"]);
  store.roots = [...store.roots, { owner: "new@x", fsId: "a" }];
  clock.advance(9_999);
  assert.deepEqual(await names(), ["bob@x"]);
  assert.equal(store.reads, 1);
  clock.advance(1);
  await names();
  assert.equal(store.reads, 2);
  assert.deepEqual(await names(), ["bob@x", "new@x"]);
  store.error = new Error("gone");
  clock.advance(10_000);
  await names();
  await names();
  assert.deepEqual(await names(), ["bob@x", "new@x"]);
});

test("a page is the same bytes until something has changed, and a user who is gone is gone after the next round", async () => {
  const { clusterState, users, names, round } = startList(["a"]);
  const query = usersQuery.parse({});
  clusterState.answered("a", readingOf({ "bob@x": { used: 1n }, "eve@x": { used: 1n } }));
  const page = await users.page(query);
  assert.equal(await users.page(query), page);
  clusterState.answered("a", readingOf({ "eve@x": { used: 1n } }));
  round();
  assert.deepEqual(await names(), ["eve@x"]);
});

test("queries that are none are refused: limits, sorts, cursors that nobody gave (D5)", () => {
  for (const query of [
    { limit: "0" },
    { limit: "501" },
    { limit: "1.5" },
    { limit: "x" },
    { sort: "size" },
    { cursor: "x" },
    { cursor: Buffer.from("[1]").toString("base64url") },
    { cursor: Buffer.from('["a",2]').toString("base64url") },
    { q: "x".repeat(255) },
    { node: "" },
    { node: "x".repeat(64) },
    { node: ["a", "b"] },
    { other: "1" },
  ]) {
    assert.equal(usersQuery.safeParse(query).success, false, JSON.stringify(query));
  }
  assert.equal(usersQuery.safeParse({ limit: "500", sort: "usage", q: "x".repeat(254) }).success, true);
  assert.equal(usersQuery.safeParse({ node: "x".repeat(63) }).success, true);
});
