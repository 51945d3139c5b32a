// Tests every FileServer operation for every kind of caller: its answer, and no change by refusals.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { ManualClock, systemClock } from "#base/clock.ts";
import { stringify64 } from "#base/json64.ts";
import { SESSION_IDLE_TIMEOUT_MS, SESSION_LIFETIME_MS } from "#base/limits.ts";
import { type CallerLimit, makeVerifiedIdentity } from "#base/verified-identity.ts";
import { startTestNode, type TestNode, type TestUser } from "#fileserver/process/node.fixture.ts";
import { type Authority, loadOrCreateAuthority } from "#security/authority/authority.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { type Client, createClient, GrpcChannel } from "#wire/grpc/client.ts";
import type { CallOptions } from "#wire/grpc/client-call.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { REASON_TRAILER } from "#wire/proto/status-table.ts";
import { FILE_SERVER_ROWS, type Outcome, type Row, type Target } from "./file-server-rows.ts";

type Method = keyof typeof FILE_SERVER_ROWS;
const ROWS = Object.entries(FILE_SERVER_ROWS) as [Method, Row][];
const OWNER = "owner@example.com";
/** Statuses of the refusals for a caller's credential (D1, spec 7). */
const CODES: Readonly<Partial<Record<Outcome, Code>>> = {
  SESSION_MISSING: Code.UNAUTHENTICATED,
  SESSION_UNKNOWN: Code.UNAUTHENTICATED,
  SESSION_EXPIRED: Code.UNAUTHENTICATED,
  SESSION_IDLE: Code.UNAUTHENTICATED,
  SESSION_EVICTED: Code.UNAUTHENTICATED,
  TOKEN_REJECTED: Code.UNAUTHENTICATED,
  IP_MISMATCH: Code.PERMISSION_DENIED,
  NOT_SHARED: Code.PERMISSION_DENIED,
  NOT_ADMIN: Code.PERMISSION_DENIED,
  NOT_OWNER: Code.PERMISSION_DENIED,
  NO_SUCH_UPLOAD: Code.NOT_FOUND,
  NO_SUCH_LOCK: Code.FAILED_PRECONDITION,
  CLIENT_ID_UNSET: Code.FAILED_PRECONDITION,
};

let clock: ManualClock;
let node: TestNode;
let owner: TestUser;
let client: Client<typeof FileServer>;
const tokens: Record<string, string> = {};
let made = 0;

before(async () => {
  clock = new ManualClock(Date.now());
  node = await startTestNode({ clock, env: { SVC_ADMIN_EMAIL: "administrator@example.com" } });
  client = createClient(FileServer, node.channel());
  await makeBadSessions();
  owner = await node.signIn(OWNER);
  await owner.call.createDirectory({ path: "/shared" });
  await owner.call.share({ path: "/shared", user: "sharee@example.com" });
  for (const name of ["stranger", "sharee", "administrator"]) {
    tokens[name] = (await node.signIn(`${name}@example.com`)).token;
  }
  tokens["owner"] = owner.token;
});
after(() => node.stop());

/** Makes sessions that are invalid, each for another reason. */
async function makeBadSessions(): Promise<void> {
  const table = node.node.service.callers.sessions;
  tokens["unknown"] = `sst_${"A".repeat(43)}`;
  const expiring = await node.signIn(OWNER);
  for (let ms = 0; ms < SESSION_LIFETIME_MS; ms += SESSION_IDLE_TIMEOUT_MS / 2) {
    table.check(expiring.token, "127.0.0.1");
    clock.advance(SESSION_IDLE_TIMEOUT_MS / 2);
  }
  tokens["expired"] = expiring.token;
  tokens["idle"] = (await node.signIn(OWNER)).token;
  clock.advance(SESSION_IDLE_TIMEOUT_MS);
  tokens["evicted"] = (await node.signIn(OWNER)).token;
  for (let count = 0; count < 5; count++) await node.signIn(OWNER);
  const { identity } = table.list(OWNER)[0] ?? assert.fail();
  const facts = { clientId: "", clientVersion: "", deviceName: "elsewhere" };
  tokens["other address"] = table.create(identity, { address: "192.0.2.9", ...facts }).token;
}

const bearer = (token: string): CallOptions => ({ metadata: { authorization: `Bearer ${token}` } });

/** A new place below the shared folder, with the row's further needs. */
async function prepare(needs: Row["needs"]): Promise<Target> {
  const folder = `/shared/case-${made++}`;
  const [file, directory] = [`${folder}/file`, `${folder}/directory`];
  await owner.call.createDirectory({ path: folder });
  await owner.call.createFile({ path: file, data: Buffer.from("content of the owner") });
  await owner.call.createDirectory({ path: directory });
  let [trashId, uploadId, sessionId] = ["", "", ""];
  if (needs === "trash") {
    await owner.call.createFile({ path: `${folder}/trashed`, data: Buffer.from("x") });
    trashId = (await owner.call.trashFile({ path: `${folder}/trashed` })).item?.trashId ?? "";
  }
  if (needs === "upload") {
    uploadId = (await owner.call.beginUpload({ path: `${folder}/begun`, size: 9n })).uploadId;
  }
  if (needs === "share") await owner.call.share({ path: directory, user: "friend@example.com" });
  if (needs === "session") {
    const table = node.node.service.callers.sessions;
    const { identity } = table.list(OWNER)[0] ?? assert.fail();
    const facts = { address: "127.0.0.1", clientId: "", clientVersion: "", deviceName: "" };
    // Frees a place first, so that the owner's own session is not evicted.
    for (const session of table.list(OWNER)) if (session.deviceName === "") table.end(session);
    sessionId = table.create(identity, facts).session.id;
  }
  return { root: OWNER, folder, file, directory, trashId, uploadId, sessionId };
}

/** Everything that a call could have changed, as the owner sees it. */
async function stateOf(at: Target): Promise<string> {
  const { call } = owner;
  const [folder, directory, entries, inner, trash, quota] = await Promise.all([
    call.getAttr({ path: at.folder }),
    call.getAttr({ path: at.directory }),
    call.listDir({ path: at.folder }),
    call.listDir({ path: at.directory }),
    call.showTrash({}),
    call.getQuota({}),
  ]);
  const content = (await call.readFile({ path: at.file, length: 100 })).data.toString();
  const { sessions } = await call.listSessions({});
  const ids = sessions.map(({ sessionId }) => sessionId);
  const upload = at.uploadId === "" ? null : await call.getUpload({ uploadId: at.uploadId });
  return stringify64({ folder, directory, entries, inner, trash, quota, content, ids, upload });
}

/** How a call ended. Refusals must carry the status that D1 gives them. */
async function outcomeOf(call: Promise<unknown>): Promise<Outcome> {
  try {
    const reply = await call;
    const isRefused = typeof reply === "object" && reply !== null && "success" in reply && !reply.success;
    return isRefused ? "success=false" : "OK";
  } catch (error) {
    assert.ok(error instanceof StatusError, String(error));
    const reason = (error.metadata.get(REASON_TRAILER) ?? `no reason: ${error.message}`) as Outcome;
    assert.equal(error.code, CODES[reason], `${reason}: ${error.message}`);
    return reason;
  }
}

async function check(method: Method, row: Row, options: CallOptions, expected: Outcome): Promise<void> {
  const at = await prepare(row.needs);
  const before = await stateOf(at);
  assert.equal(await outcomeOf(row.call(client, at, options)), expected, method);
  if (expected !== "OK")
    assert.equal(await stateOf(at), before, `${method} was refused and has changed something`);
}

test("every method of the service has its row (spec 4.5)", () => {
  const methods = FileServer.methods.map(({ localName }) => localName);
  assert.deepEqual(methods.toSorted(), Object.keys(FILE_SERVER_ROWS).toSorted());
});

const BAD_SESSIONS = {
  unknown: "SESSION_UNKNOWN",
  expired: "SESSION_EXPIRED",
  idle: "SESSION_IDLE",
  evicted: "SESSION_EVICTED",
  "other address": "IP_MISMATCH",
} as const;

test("without a token nothing but the operations with a credential of their own answers, and they refuse (spec 5.3, 5.5)", async () => {
  for (const [method, row] of ROWS) {
    await check(method, row, {}, row.withoutSession?.nothing ?? "SESSION_MISSING");
  }
});

for (const [name, reason] of Object.entries(BAD_SESSIONS)) {
  test(`a session that is of no use, because of "${name}", is refused everywhere (spec 3.4, D1)`, async () => {
    for (const [method, row] of ROWS) {
      const expected = row.withoutSession?.badSession ?? reason;
      await check(method, row, bearer(tokens[name] ?? ""), expected);
    }
  });
}

for (const name of ["stranger", "sharee", "owner", "administrator"] as const) {
  test(`what the ${name} gets of the owner's files is what the rule allows, and nothing more (spec 5.4, D13)`, async () => {
    for (const [method, row] of ROWS) {
      const credential =
        method === "registerClient" ? `mock-jwt.new-${name}@example.com` : (tokens[name] ?? "");
      await check(method, row, bearer(credential), row[name]);
    }
  });
}

const SCOPES = {
  whole: { whole: true, writes: true, reaches: true },
  reading: { whole: true, writes: false, reaches: true },
  inside: { whole: false, writes: true, reaches: true },
  outside: { whole: false, writes: true, reaches: false },
} as const;

/** What the owner gets through a door by an app password of a scope. */
function answerAtDoor({ door, owner: asOwner }: Row, scope: keyof typeof SCOPES): Outcome {
  const { whole, writes, reaches } = SCOPES[scope];
  if (door === "nothing") return asOwner;
  if (door === "sign-in") return "NOT_OWNER";
  if (!reaches || (door === "whole root" && !whole)) return "NOT_SHARED";
  return door === "read" || writes ? asOwner : "NOT_OWNER";
}

for (const scope of Object.keys(SCOPES) as (keyof typeof SCOPES)[]) {
  test(`what an app password of the owner gets with the scope "${scope}" is what its bounds leave, and nothing more`, async (t) => {
    await owner.call.createDirectory({ path: `/${scope}` });
    const folders = { inside: "/shared", outside: `/${scope}` };
    const folder = scope === "inside" || scope === "outside" ? folders[scope] : undefined;
    const folderId = folder && (await owner.call.getAttr({ path: folder })).id;
    const access = scope === "reading" ? "read" : "write";
    const token = sessionWithin(t, OWNER, { access, folderId });
    for (const [method, row] of ROWS) {
      if (method === "registerClient") continue;
      await check(method, row, bearer(token), answerAtDoor(row, scope));
    }
  });
}

test("an app password of the administrator administers nothing", async (t) => {
  const token = sessionWithin(t, "administrator@example.com", { access: "write", folderId: undefined });
  for (const [method, row] of ROWS) {
    if (row.administrator !== "OK" || row.stranger === "OK") continue;
    await check(method, row, bearer(token), row.stranger);
  }
});

/** A session within the bounds of a credential, as a ticket opens one; it ends with its test. */
function sessionWithin(t: TestContext, username: string, limit: CallerLimit): string {
  const table = node.node.service.callers.sessions;
  const identity = makeVerifiedIdentity({ username, issuer: "", subject: "", limit });
  const facts = { address: "127.0.0.1", clientId: "door d1", clientVersion: "", deviceName: "d1" };
  const { token, session } = table.create(identity, facts);
  t.after(() => table.end(session));
  return token;
}

test("what a stranger hears of what is not there is what is heard of what is (D1)", async () => {
  for (const [method, row] of ROWS) {
    if (row.stranger === "OK" || row.stranger === "success=false" || row.needs === "upload") continue;
    const at = await prepare(row.needs);
    const nowhere = {
      ...at,
      root: "nobody@example.com",
      folder: "/x/y",
      file: "/x/y/z",
      directory: "/x/y/d",
      trashId: "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    };
    const hidden = { ...nowhere, root: OWNER };
    for (const place of [at, nowhere, hidden]) {
      assert.equal(
        await outcomeOf(row.call(client, place, bearer(tokens["stranger"] ?? ""))),
        row.stranger,
        method,
      );
    }
  }
});

test("a certificate is no session: with one of a node, of a foreign authority, or of another name it is as without (spec 5.3, 5.6)", async (t) => {
  const folder = scratchFolder("grove-matrix-");
  const make = (name: string): Promise<Authority> =>
    loadOrCreateAuthority(join(folder, name), { clock: systemClock });
  const [authority, foreign] = await Promise.all([make("ca"), make("foreign")]);
  const issued = async (issuer: Authority, id: string) => {
    const { certificatePem, keyPem } = await issuer.issueNodeCertificate({
      id,
      names: ["localhost"],
      addresses: ["127.0.0.1"],
    });
    return { ca: authority.certificatePem, cert: certificatePem, key: keyPem };
  };
  const secure = await startTestNode({ options: { tls: await issued(authority, "n1") } });
  const channels: GrpcChannel[] = [];
  t.after(async () => {
    for (const channel of channels) channel.close();
    await secure.stop();
  });
  const at = {
    root: OWNER,
    folder: "/f",
    file: "/f/f",
    directory: "/f/d",
    trashId: "",
    uploadId: "u",
    sessionId: "s",
  };
  for (const tls of [
    await issued(authority, "n1"),
    await issued(foreign, "n1"),
    await issued(authority, "n2"),
  ]) {
    const channel = new GrpcChannel({ addresses: [secure.address], tls });
    channels.push(channel);
    for (const [method, row] of ROWS) {
      const expected = row.withoutSession?.nothing ?? "SESSION_MISSING";
      assert.equal(await outcomeOf(row.call(createClient(FileServer, channel), at, {})), expected, method);
    }
  }
  assert.equal(secure.node.service.usage.count, 0);
  const events = await fetch(`http://127.0.0.1:${secure.node.metricsPort}/security-events`);
  const { events: listed } = (await events.json()) as { events: { type: string; count: number }[] };
  assert.deepEqual(
    listed.map(({ type, count }) => [type, count]),
    [["unknown_cert", 1]],
  );
});
