// Tests groups at a MetaServer: who may change them, what claims make of people, and what nodes hear.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ManualClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { silentLogger } from "#base/log.ts";
import { makeVerifiedIdentity } from "#base/verified-identity.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { openDirectory } from "#metaserver/directory/open-directory.ts";
import { UserStates } from "#security/identity/user-states.ts";
import { CLAIM_ROLE_LIFE_MS } from "#security/policy/group.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { Code } from "#wire/framing/status.ts";
import type { Client } from "#wire/grpc/client.ts";
import type { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { GroupGate } from "./group-gate.ts";
import { as, type MetaServerUnderTest, nodeMessage, refused, startForTest } from "./meta-server.fixture.ts";

const ROOT = as("root@example.com");
const ATLAS = "atlas@group";

interface Started {
  readonly meta: MetaServerUnderTest;
  readonly client: Client<typeof MetaServer>;
}

async function start(t: TestContext): Promise<Started> {
  const meta = await startForTest(t, { env: { SVC_ADMIN_EMAIL: "root@example.com" }, groupsClaim: "groups" });
  const client = meta.connect();
  await client.registerFileServer(nodeMessage("a"));
  await client.createGroup({ name: "atlas" }, ROOT);
  return { meta, client };
}

/** A token that names groups, issued at a moment in seconds. */
function withGroups(email: string, groups: unknown, iat?: number): ReturnType<typeof as> {
  const claims = { email, groups, ...(iat === undefined ? {} : { iat }) };
  return as(Buffer.from(JSON.stringify(claims)).toString("base64url"));
}

const member = (username: string, role: string) => ({
  name: "atlas",
  change: { case: "addMember" as const, value: { username, role } },
});
const claim = (value: string, role: string) => ({
  name: "atlas",
  change: { case: "addClaim" as const, value: { value, role } },
});

async function rolesAt(client: Client<typeof MetaServer>): Promise<string[]> {
  const { groups } = await client.listGroupRoles({ fsId: "a" });
  return groups.flatMap(({ members }) => members.map(({ username, role }) => `${username} ${role}`));
}

test("a group has a root that is placed like others, which its members are routed to and others are not", async (t) => {
  const { client } = await start(t);
  await refused(client.navigate({ root: ATLAS }, as("dave@x.de")), Code.PERMISSION_DENIED, "NOT_SHARED");
  await client.changeGroup(member("dave@x.de", "read"), ROOT);
  const { fsId, rootId } = await client.navigate({ root: ATLAS, path: "/plans" }, as("dave@x.de"));
  assert.equal(fsId, "a");
  const { roots } = await client.getRoots({}, as("dave@x.de"));
  assert.deepEqual(
    roots.map(({ owner, path, groupRole }) => [owner, path, groupRole]),
    [
      ["dave@x.de", "/", ""],
      [ATLAS, "/", "read"],
    ],
  );
  assert.equal(roots[1]?.rootId, rootId);
  await refused(client.navigate({ root: ATLAS }, as("eve@x.de")), Code.PERMISSION_DENIED, "NOT_SHARED");
  await client.changeGroup({ name: "atlas", change: { case: "removeMember", value: "dave@x.de" } }, ROOT);
  await refused(client.navigate({ root: ATLAS }, as("dave@x.de")), Code.PERMISSION_DENIED, "NOT_SHARED");
});

test("a node gets no root for a group that there is not, and nothing is in the way of a later one", async (t) => {
  const { client } = await start(t);
  const { epoch } = await client.registerFileServer(nodeMessage("a"));
  const claim = (username: string) => client.claimRoot({ fsId: "a", epoch, username });
  await refused(claim("atals@group"), Code.NOT_FOUND, "NO_SUCH_PATH");
  assert.equal((await claim(ATLAS)).fsId, "a");
  assert.equal((await client.createGroup({ name: "atals" }, ROOT)).group?.fsId, "a");
});

test("nobody signs in as a group, by any token", async (t) => {
  const { client } = await start(t);
  await refused(client.getRoots({}, as(ATLAS)), Code.UNAUTHENTICATED, "TOKEN_REJECTED");
  await refused(client.getRoots({}, as("Atlas@Group")), Code.UNAUTHENTICATED, "TOKEN_REJECTED");
});

test("administrators alone make and delete groups; a member who manages adds and removes by hand", async (t) => {
  const { meta, client } = await start(t);
  const [admin, manager, writer, stranger] = [ROOT, as("m@x.de"), as("w@x.de"), as("s@x.de")];
  await refused(client.createGroup({ name: "other" }, manager), Code.PERMISSION_DENIED, "NOT_ADMIN");
  await client.changeGroup(member("m@x.de", "manage"), admin);
  await client.changeGroup(member("w@x.de", "write"), manager);
  assert.deepEqual(await rolesAt(client), ["m@x.de manage", "w@x.de write"]);
  await refused(client.changeGroup(member("x@x.de", "read"), writer), Code.PERMISSION_DENIED, "NOT_OWNER");
  await refused(client.changeGroup(claim("eng", "read"), manager), Code.PERMISSION_DENIED, "NOT_ADMIN");
  await refused(client.deleteGroup({ name: "atlas" }, manager), Code.PERMISSION_DENIED, "NOT_ADMIN");
  // A stranger learns the same of a group that there is and of one that there is not.
  const unknown = { ...member("x@x.de", "read"), name: "nothing" };
  await refused(
    client.changeGroup(member("x@x.de", "read"), stranger),
    Code.INVALID_ARGUMENT,
    "BAD_ARGUMENT",
  );
  await refused(client.changeGroup(unknown, stranger), Code.INVALID_ARGUMENT, "BAD_ARGUMENT");
  assert.deepEqual((await client.listGroups({}, stranger)).groups, []);
  assert.deepEqual((await client.listGroups({ name: "atlas" }, writer)).groups[0]?.claims, []);
  await refused(client.changeGroup(member(ATLAS, "read"), admin), Code.INVALID_ARGUMENT, "BAD_ARGUMENT");
  // An administrator gets no role by their own word, and knows where the root is all the same.
  const self = member("root@example.com", "read");
  await refused(client.changeGroup(self, admin), Code.INVALID_ARGUMENT, "BAD_ARGUMENT");
  assert.equal((await client.navigate({ root: ATLAS }, admin)).fsId, "a");
  await client.changeGroup(self, manager);
  await client.claimRoot({ fsId: "a", epoch: 1n, username: ATLAS });
  await client.deleteGroup({ name: "atlas" }, admin);
  assert.deepEqual(await rolesAt(client), []);
  // Each change has a line of its author's, and no refusal has one.
  const lines = meta.audited.map(({ act, actor, subject, detail }) => [
    act,
    actor,
    subject,
    detail?.["user"],
  ]);
  assert.deepEqual(lines, [
    ["group.create", "root@example.com", ATLAS, undefined],
    ["group.change", "root@example.com", ATLAS, "m@x.de"],
    ["group.change", "m@x.de", ATLAS, "w@x.de"],
    ["group.change", "m@x.de", ATLAS, "root@example.com"],
    ["group.delete", "root@example.com", ATLAS, undefined],
  ]);
  // Another group of that name gets the files only where an administrator says so.
  await refused(client.createGroup({ name: "atlas" }, admin), Code.INVALID_ARGUMENT, "BAD_ARGUMENT");
  await client.createGroup({ name: "atlas", withFiles: true }, admin);
});

test("a group that could not be made is made by the next try, and has no files of an earlier one", async (t) => {
  const { meta, client } = await start(t);
  const changeGroups = t.mock.method(meta.directory, "changeGroups", () =>
    Promise.reject(new GroveError("STORE_UNAVAILABLE", "the disk is full")),
  );
  await refused(client.createGroup({ name: "second" }, ROOT), Code.UNAVAILABLE, "STORE_UNAVAILABLE");
  changeGroups.mock.restore();
  const { group } = await client.createGroup({ name: "second" }, ROOT);
  assert.equal(group?.fsId, "a");
});

test("a claim makes members at their sign-in, and the sign-in that no longer names it ends that", async (t) => {
  const { client, meta } = await start(t);
  await client.changeGroup(claim("eng", "write"), ROOT);
  const second = Math.floor(meta.clock.wallMs() / 1_000);
  await client.getRoots({}, withGroups("dave@x.de", ["eng", "ops"], second - 20));
  assert.deepEqual(await rolesAt(client), ["dave@x.de write"]);
  // A token without the claim is no token of before.
  await client.getRoots({}, withGroups("dave@x.de", ["ops"], second - 10));
  assert.deepEqual(await rolesAt(client), []);
  // The older token still counts as a sign-in, and brings nothing back.
  await client.getRoots({}, withGroups("dave@x.de", ["eng", "ops"], second - 20));
  assert.deepEqual(await rolesAt(client), []);
  await client.getRoots({}, withGroups("dave@x.de", "eng", second));
  assert.deepEqual(await rolesAt(client), ["dave@x.de write"]);
  meta.clock.standStill(CLAIM_ROLE_LIFE_MS);
  await refused(client.navigate({ root: ATLAS }, as("eve@x.de")), Code.PERMISSION_DENIED, "NOT_SHARED");
  const { groups } = await client.listGroups({ name: "atlas" }, ROOT);
  assert.ok((groups[0]?.members[0]?.untilMs ?? 0n) <= BigInt(meta.clock.wallMs()));
});

test("a token from between two that said the same changes nothing, as it is older than the last one", async (t) => {
  const { client, meta } = await start(t);
  await client.changeGroup(claim("eng", "write"), ROOT);
  const second = Math.floor(meta.clock.wallMs() / 1_000);
  for (const age of [30, 10]) await client.getRoots({}, withGroups("dave@x.de", [], second - age));
  await client.getRoots({}, withGroups("dave@x.de", ["eng"], second - 20));
  assert.deepEqual(await rolesAt(client), []);
  await client.getRoots({}, withGroups("dave@x.de", ["eng"], second - 9));
  assert.deepEqual(await rolesAt(client), ["dave@x.de write"]);
});

test("an older token brings no role back after a restart or at another MetaServer", async (t) => {
  const clock = new ManualClock();
  const directory = await openDirectory(`sqlite:${scratchFolder("groups-")}/metadata.db`, { clock });
  t.after(() => directory.close());
  const created = { name: "atlas", createdBy: "root", createdMs: 1, members: [] };
  const claims = [{ value: "eng", role: "write" as const, setBy: "root", setAtMs: 1 }];
  await directory.changeGroups({ kind: "create", group: { ...created, claims } });
  const gateOf = async (): Promise<GroupGate> => {
    const userStates = { states: new UserStates() };
    const gate = new GroupGate({ directory, groupsClaim: "groups", userStates, clock, log: silentLogger });
    t.after(() => gate.stop());
    await gate.look();
    return gate;
  };
  const token = (age: number, ...groups: string[]): Parameters<GroupGate["heard"]>[0] => ({
    identity: makeVerifiedIdentity({ username: "dave@x.de", issuer: "https://idp", subject: "7" }),
    groups,
    expiresAtWallMs: clock.wallMs() + 60_000,
    issuedAtWallMs: clock.wallMs() - age,
  });
  const latest = async (): Promise<number | undefined> => (await directory.groupBook()).people[0]?.issuedMs;
  const other = await gateOf();
  const first = await gateOf();
  // A person's first token that names no group counts too.
  await first.heard(token(4_000));
  await until(async () => (await latest()) === clock.wallMs() - 4_000);
  await other.heard(token(5_000, "eng"));
  await first.heard(token(2_000));
  await until(async () => (await latest()) === clock.wallMs() - 2_000);
  for (const gate of [other, await gateOf()]) {
    await gate.heard(token(3_000, "eng"));
    assert.equal(gate.roleOf("dave@x.de", "atlas"), undefined);
  }
  await other.heard(token(1_000, "eng"));
  assert.equal(other.roleOf("dave@x.de", "atlas"), "write");
});

test("nobody gives a role to themselves: neither by a claim that is their own, nor by hand for when one ends", async (t) => {
  const { client } = await start(t);
  const admin = withGroups("root@example.com", ["eng", "ops"]);
  const own = [claim("eng", "read"), member("root@example.com", "read")];
  for (const wanted of own) {
    await refused(client.changeGroup(wanted, admin), Code.INVALID_ARGUMENT, "BAD_ARGUMENT");
  }
  await client.changeGroup(claim("leads", "manage"), admin);
  const manager = withGroups("m@x.de", ["leads"]);
  await client.getRoots({}, manager);
  for (const role of ["read", "manage"]) {
    await refused(client.changeGroup(member("m@x.de", role), manager), Code.INVALID_ARGUMENT, "BAD_ARGUMENT");
  }
  // A role of one's own that another person gave may be made less, and not more.
  await client.changeGroup(member("root@example.com", "write"), manager);
  await client.changeGroup(claim("eng", "write"), admin);
  await refused(client.changeGroup(claim("ops", "manage"), admin), Code.INVALID_ARGUMENT, "BAD_ARGUMENT");
  await client.changeGroup(member("root@example.com", "read"), admin);
  await refused(
    client.changeGroup(member("root@example.com", "write"), admin),
    Code.INVALID_ARGUMENT,
    "BAD_ARGUMENT",
  );
});

test("no administrator hands a root over to a group of their own", async (t) => {
  const { client } = await start(t);
  const untilMs = BigInt(Date.now() + 3_600_000);
  const handOvers = [{ to: ATLAS, reason: "takes over", untilMs }];
  const keep = () => client.keepUserState({ state: { username: "dave@x.de", handOvers } }, ROOT);
  await client.changeGroup(member("m@x.de", "manage"), ROOT);
  await client.changeGroup(member("root@example.com", "read"), as("m@x.de"));
  await refused(keep(), Code.INVALID_ARGUMENT, "BAD_ARGUMENT");
  await client.changeGroup(
    { name: "atlas", change: { case: "removeMember", value: "root@example.com" } },
    ROOT,
  );
  assert.equal((await keep()).applied, true);
});

test("a claim counts nowhere while no flag names it", async (t) => {
  const meta = await startForTest(t, { env: { SVC_ADMIN_EMAIL: "root@example.com" } });
  const client = meta.connect();
  await client.registerFileServer(nodeMessage("a"));
  await client.createGroup({ name: "atlas" }, ROOT);
  await client.changeGroup(claim("eng", "write"), ROOT);
  await client.getRoots({}, withGroups("dave@x.de", ["eng"]));
  assert.deepEqual(await rolesAt(client), []);
});

test("nodes hear of each change by a mark, and of many members in pages", async (t) => {
  const { client, meta } = await start(t);
  const first = (await client.listGroupRoles({ fsId: "a" })).mark;
  await client.changeGroup(claim("eng", "read"), ROOT);
  const seenMs = meta.clock.wallMs();
  for (let count = 0; count < 900; count++) {
    const record = { username: `u${count}@x.de`, issuedMs: seenMs, seenMs, values: ["eng"] };
    await meta.directory.changeGroups({ kind: "person", record });
  }
  for (const name of ["b", "c", "d", "e"]) {
    await client.createGroup({ name }, ROOT);
    await client.changeGroup({ ...claim("eng", "read"), name }, ROOT);
  }
  await client.createGroup({ name: "z" }, ROOT);
  const heard: string[] = [];
  let pages = 0;
  for (let pageToken = ""; pages === 0 || pageToken !== ""; pages++) {
    const page = await client.listGroupRoles({ fsId: "a", pageToken });
    assert.notEqual(page.mark, first);
    for (const { name, members, fsId } of page.groups) {
      assert.equal(fsId, "a");
      heard.push(...(members.length === 0 ? [name] : members.map(({ username }) => `${name} ${username}`)));
    }
    pageToken = page.nextPageToken;
  }
  assert.equal(pages, 2);
  assert.equal(new Set(heard).size, 5 * 900 + 1);
  assert.equal(heard.length, 5 * 900 + 1);
});

test("a sign-in with a browser at a door says which groups its person is in now", async (t) => {
  const { meta, client } = await start(t);
  await client.changeGroup(claim("eng", "write"), ROOT);
  const signIn = async (groups: readonly string[], iat: number): Promise<void> => {
    const claims = { email: "dora@example.com", groups, iat };
    const token = Buffer.from(JSON.stringify(claims)).toString("base64url");
    await client.openDoorSession({ idToken: `mock-jwt.${token}` });
  };
  const nowS = Math.floor(meta.clock.wallMs() / 1_000);
  await signIn(["eng"], nowS - 10);
  assert.deepEqual(await rolesAt(client), ["dora@example.com write"]);
  await signIn([], nowS);
  assert.deepEqual(await rolesAt(client), []);
});

test("each call by a token says which groups its person is in now, whatever it is about", async (t) => {
  const { meta, client } = await start(t);
  await client.changeGroup(claim("eng", "write"), ROOT);
  const nowS = Math.floor(meta.clock.wallMs() / 1_000);
  const calls = [
    (token: ReturnType<typeof as>) => client.getRoots({}, token),
    (token: ReturnType<typeof as>) => client.getNotices({}, token),
    (token: ReturnType<typeof as>) => client.listAppPasswords({}, token),
    (token: ReturnType<typeof as>) => client.listGroups({}, token),
  ];
  for (const [at, call] of calls.entries()) {
    const email = `d${at}@example.com`;
    await call(withGroups(email, ["eng"], nowS - 20));
    assert.deepEqual(await rolesAt(client), [`${email} write`], `call ${at}`);
    await call(withGroups(email, [], nowS - 10));
    await call(withGroups(email, ["eng"], nowS - 15));
    assert.deepEqual(await rolesAt(client), [], `call ${at}`);
  }
});

test("a token without a time is no younger than others of its second", async (t) => {
  const { meta, client } = await start(t);
  await client.changeGroup(claim("eng", "write"), ROOT);
  meta.clock.advance(999 - (meta.clock.wallMs() % 1_000));
  await client.getRoots({}, withGroups("dora@example.com", []));
  await client.getRoots({}, withGroups("dora@example.com", ["eng"], Math.floor(meta.clock.wallMs() / 1_000)));
  assert.deepEqual(await rolesAt(client), ["dora@example.com write"]);
});

test("a slow look at the groups that began before a change does not take the change back", async (t) => {
  const clock = new ManualClock();
  const directory = await openDirectory(`sqlite:${scratchFolder("groups-")}/metadata.db`, { clock });
  t.after(() => directory.close());
  const slow = Promise.withResolvers<void>();
  let reads = 0;
  const groupBook: Directory["groupBook"] = async () => {
    const book = await directory.groupBook();
    if (++reads === 1) await slow.promise;
    return book;
  };
  const gate = new GroupGate({
    directory: {
      changeGroups: (change) => directory.changeGroups(change),
      findRoot: (owner) => directory.findRoot(owner),
      groupsMark: () => directory.groupsMark(),
      groupBook,
    },
    userStates: { states: new UserStates() },
    clock,
    log: silentLogger,
  });
  t.after(() => gate.stop());
  const looked = gate.look();
  await until(() => reads === 1);
  const group = { name: "atlas", createdBy: "root", createdMs: 1, members: [], claims: [] };
  const changed = gate.change({ kind: "create", group });
  await until(async () => (await directory.groupBook()).groups.length === 1);
  // A read after the change would be over by then.
  await sleep(50);
  slow.resolve();
  await Promise.all([changed, looked]);
  assert.equal(gate.has("atlas"), true);
});
