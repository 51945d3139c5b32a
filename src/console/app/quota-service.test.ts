// Tests changes of a quota against a scripted node: answers, refusals, audit, order (4.3, D6, T9, T17).
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { after, before, beforeEach, test } from "node:test";
import type { AuditAct } from "#base/audit-act.ts";
import { GroveError } from "#base/errors.ts";
import { POLL_INTERVAL_MS, U64_MAX } from "#base/limits.ts";
import { silentLogger } from "#base/log.ts";
import { NOT_ADMIN_TEXT } from "#base/refusal-texts.ts";
import { listedNode, nodeReading } from "#console/cluster/cluster-state.fixture.ts";
import { ClusterStateStore } from "#console/cluster/cluster-state-store.ts";
import { HomeNodes } from "#console/cluster/home-nodes.ts";
import { UserList } from "#console/cluster/user-list.ts";
import { userRoutes } from "#console/routes/user-routes.ts";
import { quotaDialer } from "#console/services/node-dial.ts";
import { QuotaService } from "#console/services/quota-service.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { adminPasswordHash } from "#security/identity/admin-password.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { GrpcServer } from "#wire/grpc/server.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { quotaChanged } from "#wire/webapi/user.ts";
import { type Answer, type AppUnderTest, FIXTURE_PASSWORD, startApp } from "./app.fixture.ts";

type Said = { readonly success: boolean; readonly error: string; readonly inodeLimit?: bigint };
type SetQuota = (request: {
  readonly quotaBytes: bigint;
  readonly inodeLimit?: bigint | undefined;
}) => Said | Promise<Said>;

const acts: AuditAct[] = [];
const asked: {
  username: string;
  quotaBytes: bigint;
  inodeLimit?: bigint | undefined;
  hash: string | undefined;
}[] = [];
let answer: SetQuota;
let node: GrpcServer;
let address: string;
let app: AppUnderTest;
let clusterState: ClusterStateStore;
let findRoot: Directory["findRoot"];
let flush: () => Promise<void>;

before(async () => {
  node = new GrpcServer();
  node.addService(FileServer, {
    setQuota: (request, context) => {
      const hash = context.metadata.get("x-admin-password-hash");
      const { username, quotaBytes, inodeLimit } = request;
      asked.push({ username, quotaBytes, ...(inodeLimit === undefined ? {} : { inodeLimit }), hash });
      return answer(request);
    },
  });
  address = `127.0.0.1:${(await node.listen({ host: "127.0.0.1", port: 0 })).port}`;
  app = await startApp((plugged, { clock }) => {
    clusterState = new ClusterStateStore({ clock });
    clusterState.list([listedNode("a", { address }), listedNode("far", { address: "192.0.2.1:50051" })]);
    const directory = { findRoot: (owner: string) => findRoot(owner), listRoots: () => Promise.resolve([]) };
    const homes = new HomeNodes({ clock, directory, log: silentLogger });
    const decided = { locked: new Set<string>(), version: 0, refresh: () => Promise.resolve() };
    const users = new UserList({ clock, cluster: clusterState, homes, decided, fullInDays: () => undefined });
    const quotas = new QuotaService({
      clock,
      log: silentLogger,
      cluster: clusterState,
      directory,
      users,
      setQuotaOnNode: quotaDialer(undefined),
      audit: (act) => acts.push(act),
      flushAudit: () => flush(),
      timeoutMs: 1_000,
    });
    userRoutes(plugged, { users, quotas });
  });
});
after(async () => {
  clusterState.close();
  await app.close();
  await node.close();
});
beforeEach(() => {
  acts.length = 0;
  asked.length = 0;
  answer = () => ({ success: true, error: "" });
  flush = () => Promise.resolve();
  findRoot = (owner) =>
    Promise.resolve(
      owner === "nobody@x" ? undefined : { owner, rootId: "R", fsId: "a", address, live: true },
    );
  reports({ "bob@x": [50n, 100n] });
});

function reports(users: Record<string, readonly [bigint, bigint]>): void {
  const entries = Object.entries(users);
  const reading = nodeReading({
    perUserStorage: new Map(entries.map(([name, [used]]) => [name, used])),
    perUserQuota: new Map(entries.map(([name, [, quota]]) => [name, quota])),
  });
  // Two polls, far enough apart that earlier values have expired.
  clusterState.answered("a", reading);
  app?.clock.advance(3 * POLL_INTERVAL_MS);
  clusterState.answered("a", reading);
  app?.clock.advance(POLL_INTERVAL_MS);
}

const put = (body: unknown, name = "bob@x", method = "PUT"): Promise<Answer> =>
  app.askAsOperator(`/api/users/${encodeURIComponent(name)}/quota`, { method, body });

test("PUT and POST set the quota on the home node with the operator's password hash, and answer as D6 says", async () => {
  for (const method of ["PUT", "POST"]) {
    reports({ "bob@x": [50n, 100n] });
    const { status, json } = await put({ quota_bytes: 34_359_738_368 }, "Bob@X", method);
    assert.equal(status, 200);
    assert.deepEqual(quotaChanged.strict().parse(json), {
      username: "bob@x",
      quota_limit: 34_359_738_368,
      quota_source: "explicit",
      previous_limit: 100,
      // An older node reports no inode limit.
      inode_limit: null,
      home_node_id: "a",
      over_quota: false,
      applied_at: Math.floor(app.clock.wallMs() / 1000),
    });
  }
  const hash = adminPasswordHash(FIXTURE_PASSWORD);
  assert.deepEqual(asked[1], { username: "bob@x", quotaBytes: 34_359_738_368n, hash });
  const act = acts[1];
  assert.deepEqual([act?.act, act?.actor, act?.subject], ["quota.set", app.session.id, "bob@x"]);
  assert.equal(act?.detail?.["quota_bytes"], 34_359_738_368n);
  assert.equal(act?.detail?.["previous_bytes"], 100n);
  assert.equal(act?.detail?.["outcome"], "done");
  assert.ok(!JSON.stringify(acts, (_key, value: unknown) => String(value)).includes(hash));
});

test("an inode limit goes to the node where one is named, shows in the list at once, and is in the audit line", async () => {
  const perUserDetail = new Map([
    [
      "bob@x",
      {
        liveBytes: 50n,
        trashBytes: 0n,
        stagingBytes: 0n,
        fileCount: 1,
        inodeCount: 3,
        inodeLimit: 10_000_000,
        inodeLimitExplicit: false,
        lastActiveUnix: null,
        quotaExplicit: true,
        trashExpiresUnix: null,
      },
    ],
  ]);
  const perUserStorage = new Map([["bob@x", 50n]]);
  clusterState.answered(
    "a",
    nodeReading({ perUserStorage, perUserQuota: new Map([["bob@x", 100n]]), perUserDetail }),
  );
  answer = ({ inodeLimit }) => ({ success: true, error: "", inodeLimit: inodeLimit ?? 10_000_000n });
  const row = async (): Promise<unknown> => {
    const { json } = await app.askAsOperator("/api/users?q=bob");
    const [user] = (json as { users: Record<string, unknown>[] }).users;
    return [user?.["inode_count"], user?.["inode_limit"], user?.["inode_limit_source"]];
  };
  assert.deepEqual(await row(), [3, 10_000_000, "default"]);
  const { status, json } = await put({ quota_bytes: 100, inode_limit: 20 });
  assert.deepEqual([status, quotaChanged.strict().parse(json).inode_limit], [200, 20]);
  assert.equal(asked.at(-1)?.inodeLimit, 20n);
  assert.equal(acts.at(-1)?.detail?.["inode_limit"], 20n);
  assert.deepEqual(await row(), [3, 20, "explicit"]);
  await put({ quota_bytes: 100 });
  assert.equal(asked.at(-1)?.inodeLimit, undefined);
  assert.ok(!("inode_limit" in (acts.at(-1)?.detail ?? {})));
});

test("a node that knows no inode limits is told of, since the quota alone was set", async () => {
  const { status, json } = await put({ quota_bytes: 100, inode_limit: 20 });
  const { code, detail } = json as { code: string; detail: string };
  assert.deepEqual([status, code], [502, "NODE_ERROR"]);
  assert.match(detail, /bring the node up to date/);
});

test("an inode limit that is none is refused before anybody is asked (D2)", async () => {
  for (const limit of [-1, 1.5, 4_294_967_296, "20", null]) {
    const { status, json } = await put({ quota_bytes: 100, inode_limit: limit });
    assert.deepEqual([status, (json as { code: string }).code], [422, "QUOTA_INVALID"], String(limit));
  }
  assert.deepEqual(asked, []);
});

test("64 bits come through exactly, as numbers and as decimal strings, and the list shows them at once (T17)", async () => {
  for (const [sent, expected] of [
    ["9007199254740993", "9007199254740993"],
    ['"9007199254740993"', "9007199254740993"],
    ["18446744073709551615", "18446744073709551615"],
    ['"18446744073709551615"', "18446744073709551615"],
    ["9007199254740991", 9_007_199_254_740_991],
    ["1", 1],
  ] as const) {
    const { status, json } = await put(`{"quota_bytes":${sent}}`);
    assert.equal(status, 200, sent);
    assert.equal((json as { quota_limit: unknown }).quota_limit, expected);
    assert.equal(String(asked.at(-1)?.quotaBytes), String(expected));
    const list = (await app.askAsOperator("/api/users?q=bob")).json as { users: Record<string, unknown>[] };
    assert.deepEqual(
      [list.users[0]?.["quota_limit"], list.users[0]?.["quota_source"]],
      [expected, "explicit"],
    );
  }
  assert.equal(asked.at(2)?.quotaBytes, U64_MAX);
});

test("zero takes the entry away: the default of 16 GiB applies (spec 2.1, T23)", async () => {
  const { json } = await put({ quota_bytes: 0 });
  const { quota_limit, quota_source } = quotaChanged.parse(json);
  assert.deepEqual([asked[0]?.quotaBytes, quota_limit, quota_source], [0n, 17_179_869_184, "default"]);
});

test("what is no integer of 64 bits is a problem of the code QUOTA_INVALID and reaches no node (D2, D6)", async () => {
  const values = [
    "18446744073709551616",
    "-1",
    "1.5",
    "1e30",
    '"12GB"',
    '"32GiB"',
    '"-1"',
    '"0x10"',
    '""',
    '" 1"',
  ];
  const more = ['"01"', "null", "true", "[]", "{}", '"18446744073709551616"', "1e400"];
  const bodies = [...values, ...more].map((value) => `{"quota_bytes":${value}}`);
  for (const body of [...bodies, "{}", "[]", "null", '"1"', '{"quota_bytes":1,"more":2}', '{"quota":1}']) {
    const { status, problem } = await put(body);
    assert.deepEqual([body, status, problem?.code], [body, 422, "QUOTA_INVALID"]);
  }
  assert.equal((await put("{quota")).problem?.code, "BAD_JSON");
  assert.deepEqual([asked, acts], [[], []]);
});

test("names are percent-encoded e-mail addresses; others are refused before anybody looks for them (D24)", async () => {
  const long = `${"a".repeat(250)}@x.y`;
  assert.equal((await put({ quota_bytes: 1 }, long)).status, 200);
  assert.equal((await put({ quota_bytes: 1 }, "björn+tag%/2@exämple.com".replace("/", ""))).status, 200);
  assert.equal(asked.at(-1)?.username, "björn+tag%2@exämple.com");
  for (const name of [`a${long}`, "bob", "a/b@x", "a b@x", "a@x\u0000", "..@", "@x"]) {
    const { status, problem } = await put({ quota_bytes: 1 }, name);
    assert.deepEqual([name, status, problem?.code], [name, 422, "USERNAME_INVALID"]);
  }
  const raw = await app.askAsOperator("/api/users/%zz/quota", { method: "PUT", body: { quota_bytes: 1 } });
  assert.equal(raw.problem?.code, "BAD_REQUEST");
});

test("a quota below what is used is set, says so, and what was asked for is in the list (D6, A-15)", async () => {
  for (const [quota, over] of [
    [49, true],
    [50, false],
  ] as const) {
    const { json } = await put({ quota_bytes: quota });
    assert.equal(quotaChanged.parse(json).over_quota, over);
  }
});

test("nobody of that name, a node without that root, and a node that is off each have their answer (D6)", async () => {
  assert.deepEqual(problemOf(await put({ quota_bytes: 1 }, "nobody@x")), [404, "NO_SUCH_USER"]);
  assert.deepEqual([asked.length, acts.length], [0, 0]);
  answer = () => ({ success: false, error: "no such user on this fileserver" });
  assert.deepEqual(problemOf(await put({ quota_bytes: 1 })), [404, "NO_SUCH_USER"]);
  answer = () => ({ success: false, error: NOT_ADMIN_TEXT });
  const refused = await put({ quota_bytes: 1 });
  assert.deepEqual(problemOf(refused), [502, "NODE_ERROR"]);
  assert.deepEqual([refused.problem?.grpc_code, refused.problem?.reason], ["OK", NOT_ADMIN_TEXT]);
  assert.match(refused.problem?.detail ?? "", /^\S.* has another password than this console's: /);
  const error = new StatusError(Code.PERMISSION_DENIED, "too many wrong passwords");
  error.metadata.set("svc-reason", "NOT_ADMIN");
  answer = () => {
    throw error;
  };
  const limited = await put({ quota_bytes: 1 });
  assert.deepEqual(problemOf(limited), [502, "NODE_ERROR"]);
  assert.deepEqual([limited.problem?.grpc_code, limited.problem?.reason], ["PERMISSION_DENIED", "NOT_ADMIN"]);
  assert.deepEqual(
    acts.map(({ detail }) => detail?.["outcome"]),
    ["refused", "refused", "refused"],
  );
  const list = (await app.askAsOperator("/api/users?q=bob")).json as { users: Record<string, unknown>[] };
  assert.equal(list.users[0]?.["quota_limit"], 100);
});

test("a home node that is offline, unknown or away is NODE_OFFLINE, and nothing is queued (D6)", async () => {
  findRoot = (owner) => Promise.resolve({ owner, rootId: "R", fsId: "gone", address: "", live: false });
  assert.deepEqual(problemOf(await put({ quota_bytes: 1 })), [503, "NODE_OFFLINE"]);
  const closed = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => closed.once("listening", resolve));
  const { port } = closed.address() as { port: number };
  await new Promise((resolve) => closed.close(resolve));
  clusterState.list([listedNode("a", { address: `127.0.0.1:${port}` }), listedNode("far")]);
  findRoot = (owner) => Promise.resolve({ owner, rootId: "R", fsId: "a", address: "", live: true });
  const away = await put({ quota_bytes: 1 });
  assert.deepEqual(problemOf(away), [503, "NODE_OFFLINE"]);
  assert.match(away.problem?.detail ?? "", /nothing is queued/);
  clusterState.list([listedNode("a", { address }), listedNode("far")]);
  clusterState.failed("a", "silent");
  app.clock.advance(31_000);
  assert.equal(clusterState.node("a")?.status, "offline");
  assert.deepEqual(problemOf(await put({ quota_bytes: 1 })), [503, "NODE_OFFLINE"]);
  assert.equal(asked.length, 0);
});

test("a node that never answers is NODE_TIMEOUT, and the audit line says that nobody knows", {
  timeout: 60_000,
}, async () => {
  answer = () => new Promise(() => undefined);
  assert.deepEqual(problemOf(await put({ quota_bytes: 7 })), [504, "NODE_TIMEOUT"]);
  assert.equal(acts[0]?.detail?.["outcome"], "unknown");
});

test("the password goes to other machines only over TLS (T9)", async () => {
  clusterState.answered("far", nodeReading());
  findRoot = (owner) => Promise.resolve({ owner, rootId: "R", fsId: "far", address: "", live: true });
  const refused = await put({ quota_bytes: 1 });
  assert.deepEqual([...problemOf(refused), refused.problem?.reason], [502, "NODE_ERROR", "TLS_REQUIRED"]);
});

test("while the store does not answer, the node that reports the user is asked; without one it is STORE_UNAVAILABLE", async () => {
  findRoot = () => Promise.reject(new GroveError("STORE_UNAVAILABLE", "the metadata store is away"));
  assert.equal((await put({ quota_bytes: 5 })).status, 200);
  assert.deepEqual(problemOf(await put({ quota_bytes: 5 }, "other@x")), [503, "STORE_UNAVAILABLE"]);
});

test("the answer waits for the audit line to be on the disk", async () => {
  const flushed = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  flush = () => {
    reached.resolve();
    return flushed.promise;
  };
  let isAnswered = false;
  const answered = put({ quota_bytes: 5 }).then(({ status }) => {
    isAnswered = true;
    return status;
  });
  await reached.promise;
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(isAnswered, false);
  assert.equal(acts.length, 1);
  flushed.resolve();
  assert.equal(await answered, 200);
});

test("changes of one user's quota are made in the order in which they came", async () => {
  const isAsked = Promise.withResolvers<void>();
  const held = Promise.withResolvers<Said>();
  answer = ({ quotaBytes }) => {
    if (quotaBytes !== 1n) return { success: true, error: "" };
    isAsked.resolve();
    return held.promise;
  };
  const first = put({ quota_bytes: 1 });
  await isAsked.promise;
  const second = put({ quota_bytes: 2 });
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(asked.length, 1);
  // Other users' changes do not wait.
  assert.equal((await put({ quota_bytes: 3 }, "eve@x")).status, 200);
  held.resolve({ success: true, error: "" });
  assert.deepEqual([(await first).status, (await second).status], [200, 200]);
  const list = (await app.askAsOperator("/api/users?q=bob")).json as { users: Record<string, unknown>[] };
  assert.equal(list.users[0]?.["quota_limit"], 2);
});

test("visitors are told to sign in, whatever they ask (spec 5.8)", async () => {
  for (const [path, method] of [
    ["/api/users", "GET"],
    ["/api/users?limit=0", "GET"],
    ["/api/users/bob%40x/quota", "PUT"],
    ["/api/users/bob%40x/quota", "POST"],
  ] as const) {
    const { status, problem } = await app.ask(path, { method, ...(method === "GET" ? {} : { body: "{" }) });
    assert.deepEqual([path, status, problem?.code], [path, 401, "AUTH_REQUIRED"]);
  }
  assert.deepEqual(problemOf(await app.askAsOperator("/api/users?limit=0")), [422, "QUERY_INVALID"]);
  assert.deepEqual(problemOf(await app.askAsOperator("/api/users?q=a&q=b")), [422, "QUERY_INVALID"]);
  assert.deepEqual(problemOf(await app.askAsOperator("/api/users/bob%40x/quota")), [
    405,
    "METHOD_NOT_ALLOWED",
  ]);
});

function problemOf({ status, problem }: Answer): [number, string | undefined] {
  return [status, problem?.code];
}
