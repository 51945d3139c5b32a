// Tests locking users out, from HTTP to scripted nodes: an answer per node, and the higher version wins.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { AuditAct } from "#base/audit-act.ts";
import { GroveError } from "#base/errors.ts";
import { silentLogger } from "#base/log.ts";
import type { UserState } from "#base/user-state.ts";
import { listedNode } from "#console/cluster/cluster-state.fixture.ts";
import { ClusterStateStore } from "#console/cluster/cluster-state-store.ts";
import { DecidedUsers } from "#console/cluster/decided-users.ts";
import { userStateRoutes } from "#console/routes/user-state-routes.ts";
import { userStateDialer, userStateReader } from "#console/services/node-dial.ts";
import { UserStateService } from "#console/services/user-state-service.ts";
import { adminPasswordHash } from "#security/identity/admin-password.ts";
import type { GroupBook } from "#security/policy/group.ts";
import { GrpcServer } from "#wire/grpc/server.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { userStateMessage, userStateOf } from "#wire/proto/user-state-message.ts";
import { userStateChanged, userStateKnown } from "#wire/webapi/user-state.ts";
import { type Answer, type AppUnderTest, FIXTURE_PASSWORD, startApp } from "./app.fixture.ts";

const acts: AuditAct[] = [];
let told: { state: UserState; hash: string | undefined }[] = [];
/** The node's state; a newer one replaces it. */
let known: UserState | undefined;
let stored: () => Promise<UserState[]>;
const role = { username: "ada@x", role: "read", setBy: "administrator", setAtMs: 1 } as const;
const book: GroupBook = {
  mark: "1",
  groups: [{ name: "own", createdBy: "administrator", createdMs: 1, members: [role], claims: [] }],
  people: [],
};
let node: GrpcServer;
let clusterState: ClusterStateStore;
let service: UserStateService;
let app: AppUnderTest;

before(async () => {
  node = new GrpcServer();
  node.addService(FileServer, {
    listUserStates: () => ({ states: known === undefined ? [] : [userStateMessage(known)], more: false }),
    setUserState: (request, context) => {
      assert.ok(request.state !== undefined);
      const state = userStateOf(request.state);
      told.push({ state, hash: context.metadata.get("x-admin-password-hash") });
      const applied = known === undefined || state.version > known.version;
      if (applied) known = state;
      return {
        state: userStateMessage(known ?? state),
        applied,
        sessionsEnded: applied ? 2 : 0,
        uploadsDropped: 0,
      };
    },
  });
  const { port } = await node.listen({ host: "127.0.0.1", port: 0 });
  app = await startApp((plugged, { clock }) => {
    clusterState = new ClusterStateStore({ clock });
    clusterState.list([
      listedNode("a", { address: `127.0.0.1:${port}` }),
      listedNode("far", { address: "192.0.2.1:50051" }),
    ]);
    service = new UserStateService({
      clock,
      log: silentLogger,
      cluster: clusterState,
      decided: new DecidedUsers({ clock, log: silentLogger, directory: { userStates: () => stored() } }),
      directory: { groupBook: () => Promise.resolve(book) },
      setOnNode: userStateDialer(undefined),
      onNode: userStateReader(undefined),
      audit: (act) => acts.push(act),
      flushAudit: () => Promise.resolve(),
    });
    userStateRoutes(plugged, { service });
  });
});
after(async () => {
  clusterState.close();
  await app.close();
  await node.close();
});
beforeEach(() => {
  acts.length = 0;
  told = [];
  known = undefined;
  stored = () => Promise.resolve([]);
});

const put = (body: unknown, name = "dave@x"): Promise<Answer> =>
  app.askAsOperator(`/api/users/${encodeURIComponent(name)}/state`, { method: "PUT", body });

test("a lock goes to every node with the operator's password hash, and each answers for itself", async () => {
  const { status, json } = await put({ disabled: true, reason: "has left" }, "Dave@X");
  assert.equal(status, 200);
  const changed = userStateChanged.parse(json);
  assert.deepEqual([changed.username, changed.disabled, changed.holds_everywhere], ["dave@x", true, false]);
  const [near, far] = changed.nodes;
  assert.deepEqual([near?.id, near?.holds, near?.sessions_ended, near?.problem], ["a", true, 2, null]);
  assert.equal(far?.holds, false);
  assert.match(far?.problem ?? "", /only over TLS/);
  assert.equal(told[0]?.hash, adminPasswordHash(FIXTURE_PASSWORD));
  assert.deepEqual([told[0]?.state.disabled, told[0]?.state.reason], [true, "has left"]);
  const [act] = acts;
  assert.deepEqual([act?.act, act?.subject, act?.detail?.["reason"]], ["user.disable", "dave@x", "has left"]);
});

test("what a node knows that is newer is answered with a version above it, so that the last decision counts", async () => {
  await put({ disabled: true, reason: "has left" });
  assert.ok(known !== undefined);
  known = { ...known, version: known.version + 1_000_000 };
  const changed = userStateChanged.parse((await put({ disabled: false, reason: "is back" })).json);
  assert.equal(changed.nodes[0]?.holds, true);
  assert.equal(known.disabled, false);
});

test("ending sessions leaves a lock as it is", async () => {
  await put({ disabled: true, reason: "has left" });
  const ended = await app.askAsOperator("/api/users/dave%40x/end-sessions", {
    method: "POST",
    body: { reason: "laptop lost" },
  });
  assert.equal(ended.status, 200);
  assert.equal(known?.disabled, true);
  assert.ok((known?.tokensFromMs ?? 0) > 0);
  assert.equal(acts.at(-1)?.act, "user.end_sessions");
});

test("of two operators at one user at once, who ends the sessions keeps the lock of the other", async () => {
  const { promise: isLocked, resolve: locked } = Promise.withResolvers<UserState[]>();
  let reads = 0;
  stored = () => (reads++ === 0 ? Promise.resolve([]) : isLocked);
  const by = { username: "fay@x", operator: app.session, address: "", requestId: "", reason: "laptop lost" };
  const lock = service.change({ ...by, disabled: true });
  const end = service.change({ ...by, endsSessions: true });
  await lock;
  app.clock.advance(1_000);
  locked([]);
  assert.equal((await end).disabled, true);
  assert.equal(known?.disabled, true);
  assert.ok(known.tokensFromMs > 0);
});

test("what was decided here is shown while the store is away; what nobody has told is not made up", async () => {
  stored = () => Promise.reject(new GroveError("STORE_UNAVAILABLE", "away"));
  await put({ disabled: true, reason: "has left" }, "eve@x");
  const shown = userStateKnown.parse((await app.askAsOperator("/api/users/eve%40x/state")).json);
  assert.deepEqual([shown.state?.disabled, shown.state?.reason], [true, "has left"]);
  assert.notEqual((await app.askAsOperator("/api/users/somebody%40x/state")).status, 200);
});

test("a lock without a reason, and what is no user, are refused before any node hears of it", async () => {
  for (const body of [
    { disabled: true, reason: " " },
    { disabled: true },
    { disabled: true, reason: "a\nb" },
  ]) {
    assert.equal((await put(body)).status, 422);
  }
  assert.equal((await put({ disabled: true, reason: "x" }, "nobody")).status, 422);
  assert.deepEqual(told, []);
});

const post = (what: string, body: unknown): Promise<Answer> =>
  app.askAsOperator(`/api/users/dave%40x/${what}`, { method: "POST", body });

test("a root is handed over on every node, a lock stays as it was, and the panel shows it at both users", async () => {
  await put({ disabled: true, reason: "has left" });
  const until = Math.floor(Date.now() / 1_000) + 2 * 366 * 86_400;
  assert.equal((await post("hand-over", { to: "carol@x", until, reason: "too long" })).status, 422);
  const soon = Math.floor(app.clock.wallMs() / 1_000) + 3_600;
  for (const wrong of [
    { to: "dave@x", until: soon, reason: "x" },
    { to: "carol@x", until: soon, reason: " " },
    { to: "carol@x", until: 0, reason: "x" },
    { to: "nobody", until: soon, reason: "x" },
  ]) {
    assert.equal((await post("hand-over", wrong)).status, 422, JSON.stringify(wrong));
  }
  const handed = await post("hand-over", { to: "Carol@X", until: soon, reason: "finishes the report" });
  assert.equal(handed.status, 200);
  assert.deepEqual([known?.disabled, known?.reason], [true, "has left"]);
  assert.deepEqual(
    known?.handOvers?.map(({ to, mayDelete, untilMs }) => [to, mayDelete, untilMs]),
    [["carol@x", false, soon * 1_000]],
  );
  assert.deepEqual(
    acts.slice(-2).map(({ act, subject }) => [act, subject]),
    [
      ["user.hand_over", "dave@x"],
      ["user.inherit", "carol@x"],
    ],
  );
  const dave = userStateKnown.parse((await app.askAsOperator("/api/users/dave%40x/state")).json);
  const carol = userStateKnown.parse((await app.askAsOperator("/api/users/carol%40x/state")).json);
  assert.deepEqual(
    [dave.hand_overs[0]?.to, carol.inherits[0]?.root, carol.inherits[0]?.reason],
    ["carol@x", "dave@x", "finishes the report"],
  );
  await put({ disabled: false, reason: "is back" });
  assert.equal(known?.handOvers?.length, 1);
  assert.equal((await post("end-hand-over", { to: "carol@x", reason: "done" })).status, 200);
  assert.equal(known?.handOvers, undefined);
  assert.equal(acts.at(-1)?.act, "user.inherit_end");
});

test("nobody hands a root over to a group that does not exist, or by name to one of their own", async () => {
  const person = app.sessions.create("", "", { username: "ada@x", subject: "s" }).session;
  const handsOver = { to: "own@group", mayDelete: false, untilMs: app.clock.wallMs() + 3_600_000 };
  const by = { username: "zoe@x", handsOver, address: "", requestId: "", reason: "takes over" };
  await assert.rejects(service.change({ ...by, operator: person }), { code: "BAD_ARGUMENT" });
  const toNone = { ...by, handsOver: { ...handsOver, to: "none@group" }, operator: app.session };
  await assert.rejects(service.change(toNone), { code: "BAD_ARGUMENT", message: "there is no group none" });
  assert.deepEqual(told, []);
  assert.equal((await service.change({ ...by, operator: app.session })).nodes[0]?.holds, true);
});

test("while the store is away, what nodes know of a user is kept with what is decided: a lock and a removal stay", async () => {
  await put({ disabled: true, reason: "has left" });
  assert.ok(known !== undefined);
  const removal = { dueAtMs: app.clock.wallMs() + 30 * 86_400_000, isReleased: false };
  known = { ...known, username: "erin@x", version: 1, removal };
  stored = () => Promise.reject(new GroveError("STORE_UNAVAILABLE", "away"));
  const until = Math.floor(app.clock.wallMs() / 1_000) + 3_600;
  const { status } = await app.askAsOperator("/api/users/erin%40x/hand-over", {
    method: "POST",
    body: { to: "carol@x", until, reason: "takes it home" },
  });
  assert.equal(status, 200);
  assert.equal(known.handOvers?.length, 1);
  assert.deepEqual([known.disabled, known.removal], [true, removal]);
});

test("a removal that was decided elsewhere is shown, and is not undone by letting the user in", async () => {
  await put({ disabled: true, reason: "has left" });
  assert.ok(known !== undefined);
  const dueAtMs = app.clock.wallMs() + 30 * 86_400_000;
  known = { ...known, version: known.version + 1_000_000, removal: { dueAtMs, isReleased: false } };
  const removed = known;
  stored = () => Promise.resolve([removed]);
  const shown = userStateKnown.parse((await app.askAsOperator("/api/users/dave%40x/state")).json);
  assert.equal(shown.state?.removed_until, Math.floor(dueAtMs / 1_000));
  const { status, json } = await put({ disabled: false, reason: "is back" });
  assert.equal(status, 422);
  assert.match(JSON.stringify(json), /'grove user remove' with --undo brings back/);
  assert.equal(known.disabled, true);
});
