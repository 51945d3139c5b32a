// Tests every MetaServer operation for every kind of caller: users by ID token, nodes by certificate.
import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ManualClock, systemClock } from "#base/clock.ts";
import type { ErrorCode } from "#base/errors.ts";
import { stringify64 } from "#base/json64.ts";
import {
  type MetaServerUnderTest,
  nodeMessage,
  startForTest,
} from "#metaserver/process/meta-server.fixture.ts";
import { type Authority, loadOrCreateAuthority } from "#security/authority/authority.ts";
import {
  exportPrivateKey,
  exportPublicKey,
  importPrivateKey,
  makeKeyPair,
  makeLeafCertificate,
} from "#security/authority/certificate-maker.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import type { Client } from "#wire/grpc/client.ts";
import type { CallOptions } from "#wire/grpc/client-call.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { REASON_TRAILER } from "#wire/proto/status-table.ts";

const OWNER = "owner@example.com";
const TIMEOUT = { timeout: 120_000 };

type Outcome = "OK" | ErrorCode;
type Meta = Client<typeof MetaServer>;

/** The call of an operation, here in the name of the node "a", and its permitted callers. */
interface Row {
  readonly call: (client: Meta, options: CallOptions) => Promise<unknown>;
  readonly plane: "user" | "control" | "enrolment" | "administrators" | "doors";
}

const FS_A = { fsId: "a", epoch: 1n };
const GRANT = { owner: OWNER, path: "/docs", user: "sharee@example.com", version: 9n };

const LEAVER = {
  username: "leaver@example.com",
  disabled: true,
  version: 7n,
  reason: "has left",
  setBy: "administrator",
};

const UNKNOWN_JOIN_TOKEN = `gjt_${"0".repeat(16)}.${"A".repeat(43)}.${"0".repeat(64)}`;

/** One row for each method of the service: a method without one does not compile, and fails the test. */
const ROWS: Readonly<Record<keyof (typeof MetaServer)["method"], Row>> = {
  getRoots: { plane: "user", call: (client, options) => client.getRoots({}, options) },
  navigate: {
    plane: "user",
    call: (client, options) => client.navigate({ root: OWNER, path: "/docs" }, options),
  },
  registerFileServer: {
    plane: "control",
    call: (client, options) => client.registerFileServer(nodeMessage("a"), options),
  },
  heartbeat: { plane: "control", call: (client, options) => client.heartbeat(FS_A, options) },
  claimRoot: {
    plane: "control",
    call: (client, options) => client.claimRoot({ ...FS_A, username: OWNER }, options),
  },
  listReboundSubjects: {
    plane: "control",
    call: (client, options) => client.listReboundSubjects(FS_A, options),
  },
  rootShare: {
    plane: "control",
    call: (client, options) => client.rootShare({ ...FS_A, ...GRANT }, options),
  },
  rootUnshare: {
    plane: "control",
    call: (client, options) => client.rootUnshare({ ...FS_A, ...GRANT }, options),
  },
  exchangeUserStates: {
    plane: "control",
    call: (client, options) => client.exchangeUserStates({ ...FS_A, states: [LEAVER] }, options),
  },
  listFileServers: {
    plane: "administrators",
    call: (client, options) => client.listFileServers({}, options),
  },
  keepUserState: {
    plane: "administrators",
    call: (client, options) => client.keepUserState({ state: { ...LEAVER, version: 0n } }, options),
  },
  getUserStates: { plane: "administrators", call: (client, options) => client.getUserStates({}, options) },
  // A node that joins has no certificate yet: only its one-time token counts.
  joinNode: {
    plane: "enrolment",
    call: (client, options) => client.joinNode({ token: UNKNOWN_JOIN_TOKEN, nodeId: "a" }, options),
  },
  renewCertificate: {
    plane: "control",
    call: (client, options) => client.renewCertificate({ nodeId: "a" }, options),
  },
  createAppPassword: {
    plane: "user",
    call: (client, options) => client.createAppPassword({ name: "laptop" }, options),
  },
  listAppPasswords: { plane: "user", call: (client, options) => client.listAppPasswords({}, options) },
  listBrowserSessions: { plane: "user", call: (client, options) => client.listBrowserSessions({}, options) },
  endBrowserSessions: {
    plane: "user",
    call: (client, options) => client.endBrowserSessions({ which: { case: "others", value: true } }, options),
  },
  getNotices: { plane: "user", call: (client, options) => client.getNotices({}, options) },
  setNotices: { plane: "user", call: (client, options) => client.setNotices({ off: true }, options) },
  revokeAppPassword: {
    plane: "user",
    call: (client, options) => client.revokeAppPassword({ which: "laptop" }, options),
  },
  issueTicket: {
    plane: "doors",
    call: (client, options) => client.issueTicket({ appPassword: "gap_x", fsId: "a" }, options),
  },
  openDoorSession: {
    plane: "doors",
    call: (client, options) => client.openDoorSession({ idToken: "gap_x" }, options),
  },
  endDoorSession: {
    plane: "doors",
    call: (client, options) => client.endDoorSession({ secret: "gds_x" }, options),
  },
  locateRoot: {
    plane: "doors",
    call: (client, options) => client.locateRoot({ rootId: "01ARZ3NDEKTSV4RRFFQ69G5FAV" }, options),
  },
  getTicketNews: { plane: "control", call: (client, options) => client.getTicketNews(FS_A, options) },
  createGroup: {
    plane: "administrators",
    call: (client, options) => client.createGroup({ name: "atlas" }, options),
  },
  listGroups: { plane: "user", call: (client, options) => client.listGroups({}, options) },
  changeGroup: {
    plane: "user",
    call: (client, options) =>
      client.changeGroup({ name: "atlas", change: { case: "removeMember", value: OWNER } }, options),
  },
  deleteGroup: {
    plane: "administrators",
    call: (client, options) => client.deleteGroup({ name: "atlas" }, options),
  },
  listGroupRoles: { plane: "control", call: (client, options) => client.listGroupRoles(FS_A, options) },
};
const METHODS = Object.entries(ROWS);

/** The refusal of a caller without a valid credential. */
const WITHOUT_PROOF = {
  user: "TOKEN_REJECTED",
  enrolment: "TOKEN_REJECTED",
  administrators: "NOT_ADMIN",
  doors: "CLIENT_CERT_REQUIRED",
} as const;

const CODES: Readonly<Partial<Record<Outcome, Code>>> = {
  TOKEN_REJECTED: Code.UNAUTHENTICATED,
  CLIENT_CERT_REQUIRED: Code.UNAUTHENTICATED,
  NOT_SHARED: Code.PERMISSION_DENIED,
  NOT_ADMIN: Code.PERMISSION_DENIED,
  BAD_ARGUMENT: Code.INVALID_ARGUMENT,
  IDP_UNAVAILABLE: Code.UNAVAILABLE,
};

async function outcomeOf(call: Promise<unknown>): Promise<Outcome> {
  try {
    await call;
    return "OK";
  } catch (error) {
    assert.ok(error instanceof StatusError, String(error));
    const reason = (error.metadata.get(REASON_TRAILER) ?? `no reason: ${error.message}`) as Outcome;
    assert.equal(error.code, CODES[reason], `${reason}: ${error.message}`);
    return reason;
  }
}

async function stateOf({ directory }: MetaServerUnderTest): Promise<string> {
  const nodes = await directory.nodes();
  const shared = await directory.rootsSharedWith("sharee@example.com");
  return stringify64({ nodes, shared });
}

const bearer = (token: string): CallOptions => ({ metadata: { authorization: `Bearer ${token}` } });
const mock = (email: string): CallOptions => bearer(`mock-jwt.${email}`);
const claims = (fields: object): string =>
  `mock-jwt.${Buffer.from(JSON.stringify(fields)).toString("base64url")}`;

test("every method of the service has its row (spec 4.5)", () => {
  const methods = MetaServer.methods.map(({ localName }) => localName);
  assert.deepEqual(methods.toSorted(), Object.keys(ROWS).toSorted());
});

test(
  "users' calls need a valid ID token, and tell of a root only those who reach something in it (spec 4.5, D1)",
  TIMEOUT,
  async (t) => {
    const meta = await startForTest(t);
    const client = meta.connect();
    const { epoch } = await client.registerFileServer(
      nodeMessage("a", { roots: [{ owner: OWNER, rootId: "01ARZ3NDEKTSV4RRFFQ69G5FAV", version: 1n }] }),
    );
    assert.equal(epoch, 1n);
    await client.rootShare({ ...FS_A, ...GRANT });
    const expired = claims({ email: OWNER, exp: Math.floor(meta.clock.wallMs() / 1_000) - 61 });
    const table: [caller: string, options: CallOptions, getRoots: Outcome, navigate: Outcome][] = [
      ["no token", {}, "TOKEN_REJECTED", "TOKEN_REJECTED"],
      // A session belongs to one FileServer: in any state its token is no ID token here.
      ["a session token", bearer(`sst_${"A".repeat(43)}`), "IDP_UNAVAILABLE", "IDP_UNAVAILABLE"],
      ["unknown", bearer("mock-jwt.nonsense"), "TOKEN_REJECTED", "TOKEN_REJECTED"],
      ["expired", bearer(expired), "TOKEN_REJECTED", "TOKEN_REJECTED"],
      ["another audience", bearer(claims({ email: OWNER, aud: "x" })), "TOKEN_REJECTED", "TOKEN_REJECTED"],
      [
        "an unverified address",
        bearer(claims({ email: OWNER, email_verified: false })),
        "TOKEN_REJECTED",
        "TOKEN_REJECTED",
      ],
      ["another user", mock("stranger@example.com"), "OK", "NOT_SHARED"],
      ["a sharee", mock("sharee@example.com"), "OK", "OK"],
      ["the owner", mock(OWNER), "OK", "OK"],
      ["an administrator", mock("administrator@example.com"), "OK", "NOT_SHARED"],
    ];
    for (const [caller, options, getRoots, navigate] of table) {
      for (const [row, expected] of [
        [ROWS.navigate, navigate],
        [ROWS.getRoots, getRoots],
      ] as const) {
        const before = await stateOf(meta);
        assert.equal(await outcomeOf(row.call(client, options)), expected, caller);
        if (expected !== "OK") assert.equal(await stateOf(meta), before, caller);
      }
    }
    const { roots } = await client.getRoots({}, mock("stranger@example.com"));
    assert.deepEqual(
      roots.map(({ owner }) => owner),
      ["stranger@example.com"],
    );
  },
);

interface Secured extends MetaServerUnderTest {
  readonly ca: string;
  certified(issuer: Authority, id: string): Promise<Meta>;
  named(dnsName: string): Promise<Meta>;
  readonly authority: Authority;
  readonly foreign: Authority;
}

async function startSecured(t: TestContext): Promise<Secured> {
  const folder = scratchFolder("metaserver-");
  const make = async (name: string): Promise<Authority> => {
    await mkdir(join(folder, name));
    return loadOrCreateAuthority(join(folder, name), { clock: systemClock });
  };
  const [authority, foreign] = [await make("ca"), await make("foreign")];
  const own = await authority.issueNodeCertificate({ id: "metaserver", addresses: ["127.0.0.1"] });
  const tls = { cert: own.certificatePem, key: own.keyPem, ca: authority.certificatePem };
  const certificates = {
    renewer: undefined,
    authority,
    revocations: undefined,
    served: () => tls,
    onChange: () => undefined,
    isOwnName: () => false,
    close: () => Promise.resolve(),
  };
  const meta = await startForTest(t, { clock: new ManualClock(Date.now()), certificates });
  const ca = authority.certificatePem;
  return {
    ...meta,
    ca,
    authority,
    foreign,
    async certified(issuer, id) {
      const { certificatePem, keyPem } = await issuer.issueNodeCertificate({ id });
      return meta.connect({ ca, cert: certificatePem, key: keyPem });
    },
    async named(dnsName) {
      const keys = await makeKeyPair();
      const privateKey = await importPrivateKey(await readFile(join(folder, "ca", "ca.key"), "utf8"));
      const cert = await makeLeafCertificate(
        { certificatePem: ca, privateKey },
        {
          commonName: "x",
          dnsNames: [dnsName],
          ipAddresses: [],
          publicKey: await exportPublicKey(keys.publicKey),
        },
        { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) },
      );
      return meta.connect({ ca, cert, key: await exportPrivateKey(keys.privateKey) });
    },
  };
}

test(
  "control calls are Unauthenticated without a certificate for that node, whatever token comes along, and keep nothing (spec 5.6)",
  TIMEOUT,
  async (t) => {
    const meta = await startSecured(t);
    const bare = meta.connect({ ca: meta.ca });
    const callers: [caller: string, client: Meta, options: CallOptions][] = [
      ["no token", bare, {}],
      ["a session token", bare, bearer(`sst_${"A".repeat(43)}`)],
      ["a user", bare, mock("stranger@example.com")],
      ["the owner", bare, mock(OWNER)],
      ["an administrator", bare, mock("administrator@example.com")],
      ["a foreign certificate", await meta.certified(meta.foreign, "a"), {}],
      ["a wrong name", await meta.named("a.example.com"), {}],
      ["a name below the node's", await meta.named("x.a.cluster.local"), {}],
      ["another node's certificate", await meta.certified(meta.authority, "b"), {}],
    ];
    const before = await stateOf(meta);
    for (const [at, [caller, client, options]] of callers.entries()) {
      for (const [method, { plane, call }] of METHODS) {
        // After some wrong join tokens an address is refused without a check.
        if (plane === "enrolment" && at >= 3) continue;
        const expected = plane === "control" ? "CLIENT_CERT_REQUIRED" : WITHOUT_PROOF[plane];
        if (plane === "user" && options.metadata !== undefined) continue;
        assert.equal(await outcomeOf(call(client, options)), expected, `${method} by ${caller}`);
      }
    }
    assert.equal(await stateOf(meta), before);
  },
);

test(
  "a node with its own certificate speaks for itself, and is no user (spec 5.6, D20)",
  TIMEOUT,
  async (t) => {
    const meta = await startSecured(t);
    const node = await meta.certified(meta.authority, "a");
    for (const [method, { plane, call }] of METHODS) {
      assert.equal(
        await outcomeOf(call(node, {})),
        plane === "control" ? "OK" : WITHOUT_PROOF[plane],
        method,
      );
    }
  },
);
