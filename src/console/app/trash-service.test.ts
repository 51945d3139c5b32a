// Tests a user's trash from HTTP to a scripted node: names for a reason, restores, audit lines.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { AuditAct } from "#base/audit-act.ts";
import { silentLogger } from "#base/log.ts";
import { listedNode } from "#console/cluster/cluster-state.fixture.ts";
import { ClusterStateStore } from "#console/cluster/cluster-state-store.ts";
import { trashRoutes } from "#console/routes/trash-routes.ts";
import { trashDialer } from "#console/services/node-dial.ts";
import { TrashService, USER_TRASH_PAGE } from "#console/services/trash-service.ts";
import { adminPasswordHash } from "#security/identity/admin-password.ts";
import { Metadata } from "#wire/framing/metadata.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { GrpcServer } from "#wire/grpc/server.ts";
import { Kind, OnConflict } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { userTrashPage, userTrashRestored } from "#wire/webapi/user-trash.ts";
import { type Answer, type AppUnderTest, FIXTURE_PASSWORD, startApp } from "./app.fixture.ts";

const ITEM = {
  trashId: "0m2x7k1qa-1f",
  originalPath: "/plan.txt",
  kind: Kind.FILE,
  size: 2n ** 53n + 1n,
  inodeCount: 1n,
  trashedAtMs: 1_790_000_000_500n,
  // Beyond the range of Date, as a node may send.
  expiresAtMs: 2n ** 62n,
  trashedBy: "dave@x",
  parentExists: true,
};
const acts: AuditAct[] = [];
let asked: Record<string, unknown>[] = [];
let refuses: StatusError | undefined;
let node: GrpcServer;
let clusterState: ClusterStateStore;
let app: AppUnderTest;

before(async () => {
  node = new GrpcServer();
  node.addService(FileServer, {
    showTrash: ({ root, operator, pageSize, pageToken }, { metadata }) => {
      const passwordHash = metadata.get("x-admin-password-hash");
      asked.push({ root, reason: operator?.reason, pageSize, pageToken, passwordHash });
      if (refuses !== undefined) throw refuses;
      return { items: [ITEM], nextPageToken: pageToken === "" ? "2" : "", operatorLooks: [] };
    },
    restoreFile: ({ root, operator, trashId, targetPath, onConflict }) => {
      asked.push({ root, reason: operator?.reason, trashId, targetPath, onConflict });
      if (refuses !== undefined) throw refuses;
      return { path: "/plan.txt" };
    },
  });
  const { port } = await node.listen({ host: "127.0.0.1", port: 0 });
  app = await startApp((plugged, { clock }) => {
    clusterState = new ClusterStateStore({ clock });
    clusterState.list([
      listedNode("a", { address: `127.0.0.1:${port}` }),
      listedNode("far", { address: "192.0.2.1:50051" }),
    ]);
    const places: Readonly<Record<string, string>> = { "dave@x": "a", "eve@x": "far" };
    const service = new TrashService({
      log: silentLogger,
      cluster: clusterState,
      directory: {
        findRoot: (owner) => {
          const fsId = places[owner];
          const rest = { owner, rootId: "r", address: "", live: true };
          return Promise.resolve(fsId === undefined ? undefined : { ...rest, fsId });
        },
      },
      users: { find: () => Promise.resolve(undefined) },
      onNode: trashDialer(undefined),
      audit: (act) => acts.push(act),
      flushAudit: () => Promise.resolve(),
    });
    trashRoutes(plugged, { service });
  });
});
after(async () => {
  clusterState.close();
  await app.close();
  await node.close();
});
beforeEach(() => {
  acts.length = 0;
  asked = [];
  refuses = undefined;
});

const post = (body: unknown, name = "dave@x", what = "trash"): Promise<Answer> =>
  app.askAsOperator(`/api/users/${encodeURIComponent(name)}/${what}`, { method: "POST", body });

test("names come from the home node for a reason, with the operator's password, and the log says who asked and why", async () => {
  const { status, json } = await post({ reason: " ticket 4711 " }, "Dave@X");
  assert.equal(status, 200);
  const page = userTrashPage.strict().parse(json);
  assert.deepEqual(page, {
    username: "dave@x",
    node_id: "a",
    items: [
      {
        trash_id: ITEM.trashId,
        path: "/plan.txt",
        kind: "file",
        size: "9007199254740993",
        trashed_at: 1_790_000_000,
        expires_at: null,
        trashed_by: "dave@x",
      },
    ],
    next_page_token: "2",
  });
  assert.deepEqual(asked, [
    {
      root: "dave@x",
      reason: "ticket 4711",
      pageSize: USER_TRASH_PAGE,
      pageToken: "",
      passwordHash: adminPasswordHash(FIXTURE_PASSWORD),
    },
  ]);
  const next = userTrashPage.parse((await post({ reason: "ticket 4711", page_token: "2" })).json);
  assert.equal(next.next_page_token, null);
  const [act] = acts;
  const { reason, outcome, items } = act?.detail ?? {};
  assert.deepEqual(
    [act?.act, act?.subject, reason, outcome, items],
    ["trash.look", "dave@x", "ticket 4711", "done", 1],
  );
});

test("one item goes back to where it was, and the log names it", async () => {
  const request = { reason: "asked by phone", trash_id: ITEM.trashId };
  const { json } = await post({ ...request, on_conflict: "rename" }, "dave@x", "trash/restore");
  assert.deepEqual(userTrashRestored.strict().parse(json), {
    username: "dave@x",
    node_id: "a",
    path: "/plan.txt",
  });
  await post(request, "dave@x", "trash/restore");
  assert.deepEqual(
    asked.map(({ trashId, targetPath, onConflict }) => [trashId, targetPath, onConflict]),
    [
      [ITEM.trashId, "", OnConflict.RENAME],
      [ITEM.trashId, "", OnConflict.FAIL],
    ],
  );
  const [act] = acts;
  const { path, trash_id: id, reason } = act?.detail ?? {};
  assert.deepEqual(
    [act?.act, path, id, reason],
    ["trash.restore", "/plan.txt", ITEM.trashId, request.reason],
  );
});

test("without a reason, and with what is none, no node hears of it; visitors are refused", async () => {
  const id = { trash_id: ITEM.trashId };
  for (const body of [{}, { reason: " " }, { reason: "a\nb" }, { reason: "x".repeat(201) }]) {
    assert.equal((await post(body)).status, 422);
    assert.equal((await post({ ...body, ...id }, "dave@x", "trash/restore")).status, 422);
  }
  const replacing = { reason: "x", ...id, on_conflict: "replace" };
  assert.equal((await post(replacing, "dave@x", "trash/restore")).status, 422);
  for (const what of ["trash", "trash/restore"]) {
    const body = { reason: "x", ...id };
    assert.equal((await app.ask(`/api/users/dave%40x/${what}`, { method: "POST", body })).status, 401);
  }
  assert.deepEqual([asked, acts], [[], []]);
});

test("a node that refuses or is not to be sent a password is told of, and the attempt is in the log", async () => {
  const metadata = new Metadata({ "svc-reason": "NOT_ADMIN" });
  refuses = new StatusError(Code.PERMISSION_DENIED, "permission denied", { metadata });
  const refused = await post({ reason: "ticket" });
  assert.equal(refused.status, 502);
  assert.match(JSON.stringify(refused.json), /has another password than this console's/);
  assert.equal(acts[0]?.detail?.["outcome"], "refused");
  assert.match(JSON.stringify((await post({ reason: "ticket" }, "eve@x")).json), /only over TLS/);
  assert.equal((await post({ reason: "ticket" }, "nobody@x")).status, 503);
});
