// App passwords at a MetaServer over real TLS: who makes them, who may bring them, and what ends them.
import assert from "node:assert/strict";
import { createPublicKey, X509Certificate } from "node:crypto";
import { type TestContext, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { PERSON_ADDRESS_HEADER } from "#base/door-call.ts";
import { LAST_MOMENT_MS } from "#base/limits.ts";
import { systemRandom } from "#base/random.ts";
import { keyFingerprint } from "#security/identity/certificate-rule.ts";
import { makeAppPassword } from "#security/tickets/app-password.ts";
import { readTicket } from "#security/tickets/ticket.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { Code } from "#wire/framing/status.ts";
import type { Client } from "#wire/grpc/client.ts";
import type { CallOptions } from "#wire/grpc/client-call.ts";
import type { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { RECENT_SIGN_IN_MS, WRONG_APP_PASSWORDS_PER_MINUTE } from "./app-passwords.ts";
import { type Cluster, startCluster, TIMEOUT } from "./enrolment.fixture.ts";
import { as, nodeMessage, refused, startForTest } from "./meta-server.fixture.ts";
import { openTicketSigner, TICKET_KEY_LIFE_MS } from "./ticket-signer.ts";

type Meta = Client<typeof MetaServer>;

const AT_HOME = { metadata: { [PERSON_ADDRESS_HEADER]: "198.51.100.7" } };

interface Doors extends Cluster {
  readonly user: Meta;
  readonly door: Meta;
  readonly doorKey: string;
  readonly node: Meta;
  readonly clusterId: string;
  /** Of now, for a person of the provider. */
  idToken(email: string, facts?: object): string;
  /** A sign-in by such a token. */
  signedIn(email: string, facts?: object): CallOptions;
  password(email?: string, wish?: object): Promise<string>;
}

async function startDoors(t: TestContext): Promise<Doors> {
  const cluster = await startCluster(t, { takesMockTokens: true });
  const { authority } = cluster;
  const ca = authority.certificatePem;
  const issued = await authority.issueDoorCertificate("d1");
  const tls = { ca, cert: issued.certificatePem, key: issued.keyPem };
  const joined = await cluster.join(await cluster.token("n1"), { id: "n1" });
  assert.ok(joined.cert !== undefined && joined.key !== undefined);
  const node = cluster.connect({ ca, cert: joined.cert, key: joined.key });
  const { clusterId } = await node.registerFileServer(nodeMessage("n1"));
  const user = cluster.connect({ ca });
  const idToken: Doors["idToken"] = (email, facts = {}) => {
    const iat = Math.floor(cluster.clock.wallMs() / 1_000);
    const claims = { email, iss: "https://idp.example", sub: `s-${email}`, iat, ...facts };
    return `mock-jwt.${Buffer.from(JSON.stringify(claims)).toString("base64url")}`;
  };
  const signedIn: Doors["signedIn"] = (email, facts) => ({
    metadata: { authorization: `Bearer ${idToken(email, facts)}` },
  });
  return {
    ...cluster,
    user,
    door: cluster.connect(tls),
    doorKey: keyFingerprint(new X509Certificate(issued.certificatePem)),
    node,
    clusterId,
    idToken,
    signedIn,
    password: async (email = "alice@example.com", wish = {}) =>
      (await user.createAppPassword({ name: "laptop", ...wish }, signedIn(email))).password,
  };
}

test("a door gets a ticket for the raw app password, for one server and its own key", TIMEOUT, async (t) => {
  const doors = await startDoors(t);
  const password = await doors.password("alice@example.com", { readOnly: true, folderId: "1z" });
  const answer = await doors.door.issueTicket({ appPassword: password, fsId: "n1" }, AT_HOME);
  const { username, readOnly, folderId, ticket } = answer;
  assert.deepEqual([username, readOnly, folderId], ["alice@example.com", true, "1z"]);
  const { keys } = await doors.node.getTicketNews({ fsId: "n1" });
  const known = new Map(
    keys.map(({ id, publicKey }) => [
      id,
      createPublicKey({ key: Buffer.from(publicKey), format: "der", type: "spki" }),
    ]),
  );
  const check = { clusterId: doors.clusterId, audience: "n1", doorKey: doors.doorKey };
  const read = readTicket(ticket, known, { ...check, wallMs: doors.clock.wallMs() });
  assert.deepEqual(
    [read.username, read.subject, read.credential, read.scope.access],
    ["alice@example.com", "s-alice@example.com", answer.credential, "read"],
  );
  assert.throws(() => readTicket(ticket, known, { ...check, audience: "n2", wallMs: read.issuedMs }));
  assert.doesNotMatch(JSON.stringify(doors.logged), new RegExp(password.slice(20)));
});

test(
  "a door's route calls are answered for the password's owner, below a folder for the own root alone",
  TIMEOUT,
  async (t) => {
    const doors = await startDoors(t);
    const bob = "bob@example.com";
    await doors.node.claimRoot({ fsId: "n1", epoch: 1n, username: bob });
    await doors.node.rootShare({
      fsId: "n1",
      epoch: 1n,
      owner: bob,
      path: "/plans",
      user: "alice@example.com",
      version: 1n,
    });
    const whole = await doors.password();
    const narrow = await doors.password("alice@example.com", { name: "narrow", folderId: "1z" });
    const rootsOf = async (text: string): Promise<string[]> => {
      const { roots } = await doors.door.getRoots({}, { metadata: { authorization: `Bearer ${text}` } });
      return roots.map(({ owner }) => owner);
    };
    assert.deepEqual(await rootsOf(whole), ["alice@example.com", bob]);
    assert.deepEqual(await rootsOf(narrow), ["alice@example.com"]);
    const navigate = doors.door.navigate(
      { root: bob, path: "/plans" },
      { metadata: { authorization: `Bearer ${narrow}` } },
    );
    await refused(navigate, Code.PERMISSION_DENIED, "NOT_SHARED");
  },
);

test("an app password opens nothing without a door's certificate, and makes no other", TIMEOUT, async (t) => {
  const doors = await startDoors(t);
  const password = await doors.password();
  const bearer = { metadata: { authorization: `Bearer ${password}` } };
  for (const client of [doors.user, doors.node]) {
    await refused(
      client.issueTicket({ appPassword: password, fsId: "n1" }),
      Code.UNAUTHENTICATED,
      "CLIENT_CERT_REQUIRED",
    );
    await refused(client.getRoots({}, bearer), Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED");
  }
  const answers = [
    [doors.user, Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED"],
    [doors.door, Code.PERMISSION_DENIED, "NOT_OWNER"],
  ] as const;
  for (const [client, code, reason] of answers) {
    await refused(client.createAppPassword({ name: "b" }, bearer), code, reason);
    await refused(client.listAppPasswords({}, bearer), code, reason);
    await refused(client.revokeAppPassword({ which: "laptop" }, bearer), code, reason);
  }
  const { appPasswords } = await doors.user.listAppPasswords({}, doors.signedIn("alice@example.com"));
  assert.deepEqual(
    appPasswords.map(({ name }) => name),
    ["laptop"],
  );
});

test("a door's certificate speaks for no node", TIMEOUT, async (t) => {
  const { door } = await startDoors(t);
  const { certificate } = await door.renewCertificate({});
  assert.match(new X509Certificate(certificate).subjectAltName ?? "", /^DNS:d1\.door\.cluster\.local$/);
  const calls = [
    door.registerFileServer(nodeMessage("d1")),
    door.claimRoot({ fsId: "n1", epoch: 1n, username: "alice@example.com" }),
    door.getTicketNews({ fsId: "d1" }),
  ];
  for (const call of calls) await refused(call, Code.UNAUTHENTICATED, "CLIENT_CERT_REQUIRED");
});

test(
  "app passwords are made, listed and revoked by a sign-in of the last ten minutes alone",
  TIMEOUT,
  async (t) => {
    const { user, signedIn, clock } = await startDoors(t);
    const recent = signedIn("alice@example.com");
    clock.advance(RECENT_SIGN_IN_MS - 1_000);
    const { appPassword } = await user.createAppPassword({ name: "phone" }, recent);
    clock.advance(1_000);
    const late = [
      user.createAppPassword({ name: "other" }, recent),
      user.listAppPasswords({}, recent),
      user.revokeAppPassword({ which: "phone" }, recent),
    ];
    for (const call of late) await refused(call, Code.UNAUTHENTICATED, "TOKEN_REJECTED");
    // A provider renews "iat" without asking the person.
    const seconds = Math.floor(clock.wallMs() / 1_000);
    const renewed = signedIn("alice@example.com", { auth_time: seconds - RECENT_SIGN_IN_MS / 1_000 - 1 });
    await refused(user.listAppPasswords({}, renewed), Code.UNAUTHENTICATED, "TOKEN_REJECTED");
    const asked = signedIn("alice@example.com", { auth_time: seconds - 60 });
    assert.equal((await user.listAppPasswords({}, asked)).appPasswords.length, 1);
    const now = signedIn("alice@example.com");
    const other = user.revokeAppPassword({ which: appPassword?.id ?? "" }, signedIn("bob@example.com"));
    await refused(other, Code.INVALID_ARGUMENT, "BAD_ARGUMENT");
    await refused(user.createAppPassword({ name: "phone" }, now), Code.INVALID_ARGUMENT, "BAD_ARGUMENT");
    const endless = { name: "endless", endsMs: BigInt(LAST_MOMENT_MS) + 1n };
    await refused(user.createAppPassword(endless, now), Code.INVALID_ARGUMENT, "BAD_ARGUMENT");
    await refused(
      user.createAppPassword({ name: "nobody" }, signedIn("carol@example.com", { sub: undefined })),
      Code.UNAUTHENTICATED,
      "TOKEN_REJECTED",
    );
    assert.equal((await user.revokeAppPassword({ which: "phone" }, now)).revoked?.id, appPassword?.id);
  },
);

test(
  "a revoked or ended app password, or one of a locked user, gives no ticket, and nodes hear of its end",
  TIMEOUT,
  async (t) => {
    const doors = await startDoors(t);
    const { user, door, node, clock, signedIn, directory } = doors;
    const ends = await doors.password("alice@example.com", {
      name: "trip",
      endsMs: BigInt(clock.wallMs() + 60_000),
    });
    const revoked = await doors.password();
    const locked = await doors.password("bob@example.com");
    const ask = (appPassword: string) => door.issueTicket({ appPassword, fsId: "n1" }, AT_HOME);
    for (const text of [revoked, locked]) await ask(text);
    // A ticket does not outlive its password.
    assert.equal((await ask(ends)).ticketLifeMs, 60_000);
    const { mark } = await node.getTicketNews({ fsId: "n1" });
    assert.equal((await node.getTicketNews({ fsId: "n1", mark })).unchanged, true);
    await user.revokeAppPassword({ which: "laptop" }, signedIn("alice@example.com"));
    assert.equal(doors.audited.at(-1)?.act, "app_password.revoke");
    await refused(ask(revoked), Code.UNAUTHENTICATED, "TOKEN_REJECTED");
    clock.advance(1_000);
    const news = await node.getTicketNews({ fsId: "n1", mark });
    assert.deepEqual(
      [news.unchanged, news.ended.map(({ credential }) => credential)],
      [false, [`app:${/^gap_(.{12})_/.exec(revoked)?.[1]}`]],
    );
    await directory.putUserStates([
      {
        username: "bob@example.com",
        disabled: true,
        closesShares: false,
        version: 1,
        reason: "left",
        setBy: "administrator",
        setAtMs: 1,
        tokensFromMs: 0,
        issuer: "",
        subject: "",
      },
    ]);
    clock.advance(60_000);
    await until(async () => {
      clock.advance(500);
      return ask(locked).then(
        () => false,
        (error: unknown) => /locked/.test(String(error)),
      );
    });
    await refused(ask(ends), Code.UNAUTHENTICATED, "TOKEN_REJECTED");
  },
);

test(
  "what was made in the same second before a user's sessions were ended has ended with them",
  TIMEOUT,
  async (t) => {
    const { door, user, clock, directory, idToken, signedIn, ...doors } = await startDoors(t);
    const alice = "alice@example.com";
    const password = await doors.password();
    const { secret } = await door.openDoorSession({ idToken: idToken(alice) }, AT_HOME);
    const ask = (appPassword: string) => door.issueTicket({ appPassword }, AT_HOME);
    await ask(password);
    const decided = { disabled: false, closesShares: false, version: 1, reason: "lost laptop", setAtMs: 1 };
    const person = { username: alice, issuer: "", subject: "", setBy: "administrator" };
    clock.advance(1);
    await directory.putUserStates([{ ...decided, ...person, tokensFromMs: clock.wallMs() }]);
    await until(async () => {
      clock.advance(100);
      return ask(password).then(
        () => false,
        (error: unknown) => /sign in again/.test(String(error)),
      );
    });
    await refused(ask(secret), Code.UNAUTHENTICATED, "TOKEN_REJECTED");
    const { sessions } = await user.listBrowserSessions({}, signedIn(alice));
    assert.deepEqual(sessions, []);
    await ask(await doors.password(alice, { name: "afterwards" }));
  },
);

test("wrong secrets are counted for each network; right ones of a neighbour go on", TIMEOUT, async (t) => {
  const doors = await startDoors(t);
  const right = await doors.password();
  const ask = (appPassword: string, address = "198.51.100.7") =>
    doors.door.issueTicket({ appPassword }, { metadata: { [PERSON_ADDRESS_HEADER]: address } });
  await ask(right);
  // A wrong checksum costs no look-up and is no guess.
  for (let at = 0; at < 2 * WRONG_APP_PASSWORDS_PER_MINUTE; at++)
    await refused(ask(`${right.slice(0, -1)}-`), Code.UNAUTHENTICATED, "TOKEN_REJECTED");
  for (let at = 0; at < WRONG_APP_PASSWORDS_PER_MINUTE; at++)
    await refused(ask(makeAppPassword(systemRandom).text), Code.UNAUTHENTICATED, "TOKEN_REJECTED");
  const guess = makeAppPassword(systemRandom).text;
  await refused(ask(guess), Code.RESOURCE_EXHAUSTED, "RATE_LIMITED");
  await refused(ask(guess, "198.51.100.8"), Code.UNAUTHENTICATED, "TOKEN_REJECTED");
  await ask(right);
});

test(
  "a session or an app password that was just made opens something beside a neighbour's guesses",
  TIMEOUT,
  async (t) => {
    const { user, door, idToken, signedIn } = await startDoors(t);
    const ask = (appPassword: string) => door.issueTicket({ appPassword }, AT_HOME);
    for (let at = 0; at < WRONG_APP_PASSWORDS_PER_MINUTE; at++)
      await refused(ask(makeAppPassword(systemRandom).text), Code.UNAUTHENTICATED, "TOKEN_REJECTED");
    const { secret } = await door.openDoorSession({ idToken: idToken("alice@example.com") }, AT_HOME);
    assert.equal((await ask(secret)).username, "alice@example.com");
    const { password } = await user.createAppPassword({ name: "laptop" }, signedIn("alice@example.com"));
    assert.equal((await ask(password)).username, "alice@example.com");
    await refused(ask(makeAppPassword(systemRandom).text), Code.RESOURCE_EXHAUSTED, "RATE_LIMITED");
    await door.endDoorSession({ secret }, AT_HOME);
    await refused(ask(secret), Code.UNAUTHENTICATED, "TOKEN_REJECTED");
  },
);

test("a program that goes on with a revoked password shuts nobody of its network out", TIMEOUT, async (t) => {
  const doors = await startDoors(t);
  const revoked = await doors.password("alice@example.com", { name: "phone" });
  const ask = (appPassword: string) => doors.door.issueTicket({ appPassword }, AT_HOME);
  await ask(revoked);
  await doors.user.revokeAppPassword({ which: "phone" }, doors.signedIn("alice@example.com"));
  for (let at = 0; at < 2 * WRONG_APP_PASSWORDS_PER_MINUTE; at++)
    await refused(ask(revoked), Code.UNAUTHENTICATED, "TOKEN_REJECTED");
  await ask(await doors.password("bob@example.com"));
});

test("in mock mode a door needs no certificate and a user no subject", async (t) => {
  const meta = await startForTest(t);
  const client = meta.connect();
  await client.registerFileServer(nodeMessage("a"));
  const { password } = await client.createAppPassword({ name: "laptop" }, as("alice@example.com"));
  const { username, ticket } = await client.issueTicket({ appPassword: password, fsId: "a" });
  assert.equal(username, "alice@example.com");
  assert.notEqual(ticket, "");
});

test("who gets another person's address sees and revokes none of that one's app passwords, and may use their names", async (t) => {
  const { directory, connect } = await startForTest(t);
  const client = connect();
  await client.registerFileServer(nodeMessage("a"));
  const person = (sub: string, iss = "idp.example") => {
    const claims = { email: "info@example.com", iss, sub };
    return as(Buffer.from(JSON.stringify(claims)).toString("base64url"));
  };
  const names = async (options: CallOptions) =>
    (await client.listAppPasswords({}, options)).appPasswords.map(({ name }) => name);
  await client.createAppPassword({ name: "laptop", folderId: "1z", folderPath: "/salaries" }, person("1"));
  assert.deepEqual(await names(person("1", "https://idp.example")), ["laptop"], "the same provider");
  const at = { issuer: "idp.example" };
  const rebinding = {
    username: "info@example.com",
    from: { ...at, subject: "1" },
    to: { ...at, subject: "2" },
  };
  await directory.rebindSubjects([rebinding]);
  assert.deepEqual(await names(person("2")), []);
  await refused(
    client.revokeAppPassword({ which: "laptop" }, person("2")),
    Code.INVALID_ARGUMENT,
    "BAD_ARGUMENT",
  );
  await client.createAppPassword({ name: "laptop" }, person("2"));
  assert.deepEqual(await names(person("2")), ["laptop"]);
  const kept = await directory.appPasswordsOf("info@example.com");
  assert.deepEqual(
    kept.map(({ subject }) => subject),
    ["2"],
  );
});

test("the signing key stays over restarts, is replaced after its life, and the one before is told too", async () => {
  const folder = scratchFolder("signer-");
  const clock = new ManualClock();
  const deps = { clock, random: systemRandom };
  const [first] = (await openTicketSigner(folder, deps)).publicKeys();
  const again = await openTicketSigner(folder, deps);
  assert.deepEqual(again.publicKeys(), [first]);
  const ticket = {
    clusterId: "c",
    username: "u",
    issuer: "",
    subject: "",
    audience: "n1",
    doorKey: "k",
    scope: { access: "read", folderId: undefined },
    credential: "app:x",
    issuedMs: 0,
  } as const;
  for (let life = 0; life < 3; life++) {
    clock.advance(TICKET_KEY_LIFE_MS);
    const before = again.publicKeys()[0];
    await again.sign(ticket);
    const keys = again.publicKeys();
    assert.equal(keys.length, 2);
    assert.deepEqual(keys[1], before);
  }
});
