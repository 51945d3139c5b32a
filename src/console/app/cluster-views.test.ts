// Tests both views over HTTP: visitors' has no trace of users, operators' has all (spec 5.8.4, D4, W-09).
import assert from "node:assert/strict";
import { after, test } from "node:test";
import fc from "fast-check";
import { AUDIENCES } from "#base/audience.ts";
import { ManualClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { listedNode, nodeReading } from "#console/cluster/cluster-state.fixture.ts";
import type { NodeReading, UserDetail } from "#console/cluster/cluster-state.ts";
import { ClusterStateStore } from "#console/cluster/cluster-state-store.ts";
import { ClusterUsers } from "#console/cluster/cluster-users.ts";
import { ClusterViews } from "#console/cluster/cluster-views.ts";
import { HomeNodes } from "#console/cluster/home-nodes.ts";
import { UserList } from "#console/cluster/user-list.ts";
import { clusterRoutes } from "#console/routes/cluster-routes.ts";
import { operatorCluster, publicCluster } from "#wire/webapi/cluster.ts";
import { liveData } from "#wire/webapi/live.ts";
import { type AppUnderTest, startApp } from "./app.fixture.ts";

interface Cluster {
  readonly clock: ManualClock;
  readonly clusterState: ClusterStateStore;
  readonly views: ClusterViews;
}

const closers: (() => Promise<void> | void)[] = [];
after(async () => {
  for (const close of closers.toReversed()) await close();
});

function cluster(...ids: readonly string[]): Cluster {
  const clock = new ManualClock();
  const clusterState = new ClusterStateStore({ clock });
  const directory = { listRoots: () => Promise.resolve([]) };
  const users = new UserList({
    clock,
    cluster: clusterState,
    homes: new HomeNodes({ clock, log: silentLogger, directory }),
    decided: { locked: new Set(), version: 0, refresh: () => Promise.resolve() },
    fullInDays: () => undefined,
  });
  const views = new ClusterViews({
    cluster: clusterState,
    figuresOf: (id) => ({
      rates: { writeMbps: id.length, readMbps: 2.5, writeIops: 3, readIops: 4, errorRatePct: null },
      diskFullInDays: 12.5,
      isDiskForecastKnown: true,
    }),
    users: new ClusterUsers(users),
    clock,
  });
  closers.push(() => {
    views.close();
    users.close();
    clusterState.close();
  });
  clusterState.list(ids.map((id) => listedNode(id)));
  return { clock, clusterState, views };
}

async function served({ views }: Pick<Cluster, "views">): Promise<AppUnderTest> {
  const app = await startApp((routes) => clusterRoutes(routes, { views }));
  closers.push(() => app.close());
  return app;
}

function detail(bytes: bigint): UserDetail {
  return {
    liveBytes: bytes,
    trashBytes: 7n,
    stagingBytes: 0n,
    fileCount: 1,
    inodeCount: 2,
    inodeLimit: 10_000_000,
    inodeLimitExplicit: false,
    lastActiveUnix: null,
    quotaExplicit: true,
    trashExpiresUnix: null,
  };
}

const USERS: Partial<NodeReading> = {
  usersAssignedCount: 2,
  activeUsers: 1,
  trashBytes: 7n,
  perUserStorage: new Map([
    ["alice@example.com", 2n ** 53n + 1n],
    ["böb@example.com", 50n],
  ]),
  perUserQuota: new Map([
    ["alice@example.com", 2n ** 64n - 1n],
    ["böb@example.com", 100n],
  ]),
  perUserDetail: new Map([["böb@example.com", detail(43n)]]),
};

test("a visitor gets nodes, figures and sums; users is empty and total_users 0 (spec 5.8.4, D4)", async () => {
  const state = cluster("n1", "n2");
  state.clusterState.answered(
    "n1",
    nodeReading({ ...USERS, diskUsagePercent: 96, diskTotalBytes: 2n ** 60n }),
  );
  const app = await served(state);
  for (const path of ["/api/cluster", "/api/cluster/summary"]) {
    const { status, json, text, headers } = await app.ask(path);
    assert.equal(status, 200);
    assert.equal(headers["content-type"], "application/json; charset=utf-8");
    assert.equal(headers["cache-control"], "no-store");
    const reply = publicCluster.parse(json);
    assert.deepEqual([reply.redacted, reply.users, reply.total_users], [true, {}, 0]);
    assert.deepEqual(
      reply.nodes.map(({ id, status, unknown, stale }) => [id, status, unknown, stale]),
      [
        ["n1", "critical", undefined, false],
        ["n2", "offline", true, true],
      ],
    );
    assert.equal(reply.nodes[0]?.disk_total_bytes, "1152921504606846976");
    assert.equal(reply.nodes[0]?.write_mbps, 2);
    assert.equal(reply.nodes[0]?.disk_full_in_days, 12.5);
    assert.equal(reply.nodes[0]?.disk_forecast_known, true);
    assert.equal(reply.nodes[1]?.disk_total_bytes, null);
    assert.deepEqual(reply.cluster, {
      nodes_total: 2,
      nodes_online: 1,
      nodes_unknown: 1,
      disk_total_bytes: "1152921504606846976",
      disk_used_bytes: 429_496_729_600,
    });
    const hidden = [
      "alice",
      "böb",
      "per_user",
      "users_assigned_count",
      "active_users",
      "trash_bytes",
      "staging_bytes",
    ];
    for (const word of [
      ...hidden,
      "quota",
      '"address"',
      "locked_by",
      "boot_id",
      "damaged_file_count",
      "poll_error",
    ]) {
      assert.ok(!text.includes(word), word);
    }
  }
});

test("an operator gets the same with addresses, maps of users and all users, 64 bits exactly (D4, T17)", async () => {
  const state = cluster("n1", "n2");
  state.clusterState.answered("n1", nodeReading(USERS));
  state.clusterState.failed("n2", "the connection was refused");
  const app = await served(state);
  const reply = operatorCluster.parse((await app.askAsOperator("/api/cluster")).json);
  assert.equal(reply.redacted, false);
  assert.equal(reply.nodes[0]?.address, "192.0.2.1:50051");
  assert.deepEqual(reply.nodes[0]?.per_user_storage, {
    "alice@example.com": "9007199254740993",
    "böb@example.com": 50,
  });
  assert.deepEqual(reply.nodes[0]?.per_user_quota, {
    "alice@example.com": "18446744073709551615",
    "böb@example.com": 100,
  });
  assert.deepEqual([reply.nodes[0]?.users_assigned_count, reply.nodes[0]?.trash_bytes], [2, 7]);
  assert.equal(reply.nodes[1]?.poll_error, "the connection was refused");
  assert.deepEqual(reply.nodes[1]?.per_user_storage, {});
  assert.equal(reply.total_users, 2);
  assert.deepEqual(reply.users["böb@example.com"], {
    used_bytes: 50,
    trash_bytes: 7,
    quota_limit: 100,
    quota_source: "explicit",
    usage_percent: 50,
    node_id: "n1",
  });
});

test("users that are withheld are told as such to operators, and to nobody else (T8)", async () => {
  const state = cluster("n1");
  state.clusterState.answered("n1", nodeReading({ usersWithheld: true }));
  const app = await served(state);
  assert.match(
    (await app.askAsOperator("/api/cluster")).text,
    /"poll_error":"the node tells nothing of its users/,
  );
  assert.ok(!(await app.ask("/api/cluster")).text.includes("poll_error"));
});

test("the bytes stay the same until something has changed, and then show it", async () => {
  const { clusterState, views, clock } = cluster("n1");
  const first = views.public();
  assert.equal(views.public().body, first.body);
  const operator = await views.operator();
  assert.equal((await views.operator()).body, operator.body);
  clock.advance(500);
  assert.equal(views.public().body, first.body);
  clusterState.answered("n1", nodeReading({ cpuTempCelsius: 86 }));
  clock.advance(200);
  assert.notEqual(views.public().etag, first.etag);
  assert.match(views.public().body.toString(), /"status":"critical"/);
  assert.notEqual((await views.operator()).etag, operator.etag);
});

test("rates that come with a poll are shown with it, although they are known only after its listeners had it", () => {
  const clock = new ManualClock();
  const clusterState = new ClusterStateStore({ clock });
  let writeMbps: number | null = null;
  const views = new ClusterViews({
    cluster: clusterState,
    figuresOf: () => ({
      rates: { writeMbps, readMbps: null, writeIops: null, readIops: null, errorRatePct: null },
      diskFullInDays: undefined,
      isDiskForecastKnown: false,
    }),
    users: { json: () => Promise.resolve({ pieces: [], total: 0 }) },
    clock,
  });
  closers.push(() => clusterState.close());
  clusterState.onPoll(() => {
    writeMbps = 11;
  });
  clusterState.list([listedNode("n1")]);
  views.public();
  clusterState.answered("n1", nodeReading());
  clock.advance(200);
  assert.match(views.public().body.toString(), /"write_mbps":11/);
});

test("whoever shows the tag of an answer gets 304 without a body, and the whole once it has changed", async () => {
  const state = cluster("n1");
  const app = await served(state);
  for (const ask of [app.ask, app.askAsOperator]) {
    const first = await ask("/api/cluster");
    const etag = String(first.headers["etag"]);
    for (const known of [etag, `W/${etag}`, `"x", ${etag}`, "*"]) {
      const again = await ask("/api/cluster", { headers: { "if-none-match": known } });
      assert.deepEqual([again.status, again.text], [304, ""]);
    }
    const other = await ask("/api/cluster", { headers: { "if-none-match": '"x"' } });
    assert.equal(other.status, 200);
  }
  const visitors = String((await app.ask("/api/cluster")).headers["etag"]);
  const operator = await app.askAsOperator("/api/cluster", { headers: { "if-none-match": visitors } });
  assert.equal(operator.status, 200, "a visitor's tag is no operator's");
});

test("the snapshot of the stream says what the answer says (D8)", () => {
  const { clusterState, views } = cluster("n1", "n2");
  clusterState.answered("n2", nodeReading(USERS));
  for (const audience of AUDIENCES) {
    const data = liveData["metrics.snapshot"].parse(JSON.parse(views.snapshot(audience).toString()));
    assert.deepEqual(
      data.nodes.map(({ id }) => id),
      ["n1", "n2"],
    );
    assert.equal(data.cluster.nodes_total, 2);
  }
  assert.ok(!views.snapshot("visitor").toString().includes("alice"));
});

test("a node that was forgotten is in no view any more", () => {
  const { clusterState, views, clock } = cluster("n1", "n2");
  views.public();
  clusterState.list([listedNode("n2")]);
  clock.advance(24 * 3_600_000 + 1);
  clusterState.list([listedNode("n2")]);
  clock.advance(200);
  assert.ok(!views.public().body.toString().includes('"id":"n1"'));
});

function known<T>(values: fc.Arbitrary<T>): fc.Arbitrary<T | null> {
  return fc.option(values, { nil: null });
}

const bytes = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const count = known(fc.nat(1_000));
const map = fc
  .array(fc.tuple(fc.constantFrom("a@x", "b@example.com", "dd@example.com", "é@example.com"), bytes), {
    maxLength: 5,
  })
  .map((entries) => new Map(entries));
/** All fields of a reading that depend on users. */
const usersOf: fc.Arbitrary<Partial<NodeReading>> = fc.record({
  perUserStorage: map,
  perUserQuota: map,
  perUserDetail: map.map((users) => new Map([...users].map(([user, size]) => [user, detail(size)]))),
  usersAssignedCount: count,
  activeUsers: count,
  trashBytes: known(bytes),
  stagingBytes: known(bytes),
  quotaDriftBytes: known(bytes),
  damagedFileCount: count,
  damageFoundTotal: count,
  securityEventsTotal: count,
  usersTruncated: known(fc.boolean()),
  usersWithheld: fc.boolean(),
  invalidFields: fc.constantFrom<readonly string[]>([], ["per_user_storage"]),
});
const machine: fc.Arbitrary<Partial<NodeReading>> = fc.record({
  diskUsagePercent: known(fc.integer({ min: 0, max: 100 })),
  cpuTempCelsius: known(fc.integer({ min: 0, max: 100 })),
  diskUsedBytes: known(bytes),
});
/** Polls of two clusters that differ only in users. */
const polls = fc.array(
  fc.record({
    node: fc.constantFrom("n1", "n2", "n3"),
    fails: fc.boolean(),
    machine,
    users: fc.tuple(usersOf, usersOf),
  }),
  { minLength: 1, maxLength: 6 },
);
type Polls = typeof polls extends fc.Arbitrary<infer T> ? T : never;

function pollBoth(both: readonly Cluster[], steps: Polls): void {
  for (const { node, fails, machine: shared, users } of steps) {
    for (const [index, { clusterState, clock }] of both.entries()) {
      if (fails) clusterState.failed(node, index === 0 ? "timed out" : "answered garbage");
      else clusterState.answered(node, nodeReading({ ...shared, ...users[index] }));
      clock.advance(1_000);
    }
  }
}

test("two clusters that differ only in users are the same bytes to visitors, with the same tag (W-09)", () => {
  const [one, two] = [cluster("n1", "n2", "n3"), cluster("n1", "n2", "n3")];
  fc.assert(
    fc.property(polls, (steps) => {
      pollBoth([one, two], steps);
      assert.deepEqual(one.views.public().body, two.views.public().body);
      assert.equal(one.views.public().etag, two.views.public().etag);
      assert.deepEqual(one.views.snapshot("visitor"), two.views.snapshot("visitor"));
    }),
    { numRuns: 1_000 },
  );
});

test("and so are their answers, head and body (W-09)", async () => {
  const [one, two] = [cluster("n1", "n2", "n3"), cluster("n1", "n2", "n3")];
  const [left, right] = [await served(one), await served(two)];
  await fc.assert(
    fc.asyncProperty(polls, async (steps) => {
      pollBoth([one, two], steps);
      for (const path of ["/api/cluster", "/api/cluster/summary", "/api/cluster?x=alice@example.com"]) {
        const ask = { headers: { "x-request-id": "the-same-request" } };
        const [a, b] = [await left.ask(path, ask), await right.ask(path, ask)];
        assert.equal(a.text, b.text);
        assert.deepEqual(withoutDate(a.headers), withoutDate(b.headers));
      }
    }),
    { numRuns: 15 },
  );
});

function withoutDate({ date: _date, ...headers }: Readonly<Record<string, unknown>>): unknown {
  return headers;
}
