// Browsers' sessions at doors over real TLS: what opens one, what it may do at a FileServer, and what ends it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { DOOR_SESSION_IDLE_MS, RECENT_SIGN_IN_MS } from "#metaserver/process/app-passwords.ts";
import { until } from "#testing/until.ts";
import {
  AT,
  type DoorsUnderTest,
  FROM,
  idTokenOf,
  reasonOf,
  session,
  startDoors,
  type TestDoor,
} from "./doors.fixture.ts";

const TIMEOUT = { timeout: 120_000 };
const ALICE = "alice@example.com";
const BOB = "bob@example.com";

async function open(doors: DoorsUnderTest, door: TestDoor, email = ALICE): Promise<string> {
  const token = idTokenOf(doors, email);
  return (await door.meta.openDoorSession({ idToken: token }, { metadata: FROM })).secret;
}

test(
  "an ID token opens one session; its secret brings tickets to doors, and nothing else to anybody",
  TIMEOUT,
  async (t) => {
    const doors = await startDoors(t);
    const door = await doors.door("d1");
    const token = idTokenOf(doors, ALICE);
    const { secret, username } = await door.meta.openDoorSession({ idToken: token }, { metadata: FROM });
    assert.equal(username, ALICE);
    assert.match(secret, /^gds_/u);
    // A second door that saw the token gets nothing for it.
    const other = await doors.door("d2");
    assert.equal(
      await reasonOf(other.meta.openDoorSession({ idToken: token }, { metadata: FROM })),
      "TOKEN_REJECTED",
    );
    const person = await door.person(secret);
    assert.match(person.credential, /^browser:/u);
    const files = door.files();
    const opened = await files.registerClient({ ticket: await person.ticketFor("n1") }, { metadata: FROM });
    await files.createFile({ path: "/a", data: Buffer.from("x") }, session(opened.sessionToken));
    // It is no ID token, and no user's credential at a MetaServer without a door's certificate.
    const bearer = { metadata: { authorization: `Bearer ${secret}` } };
    const stranger = doors.cluster.connect({ ca: doors.cluster.authority.certificatePem });
    assert.equal(await reasonOf(stranger.getRoots({}, bearer)), "CLIENT_CERT_REQUIRED");
    const alone = stranger.createAppPassword({ name: "x" }, bearer);
    assert.equal(await reasonOf(alone), "CLIENT_CERT_REQUIRED");
    assert.equal(await reasonOf(stranger.openDoorSession({ idToken: token })), "CLIENT_CERT_REQUIRED");
    // The secret stands in no log, and the store has no such text.
    assert.ok(!JSON.stringify(doors.cluster.logged).includes(secret.slice(17)));
    const record = await doors.cluster.directory.findDoorSession(secret.slice(4, 16));
    assert.ok(record !== undefined && !JSON.stringify(record).includes(secret.slice(17)));
  },
);

test(
  "it shares for ten minutes after the sign-in and never administers; an app password never shares",
  TIMEOUT,
  async (t) => {
    const doors = await startDoors(t);
    const door = await doors.door("d1");
    const files = door.files();
    const person = await door.person(await open(doors, door));
    const opened = await files.registerClient({ ticket: await person.ticketFor("n1") }, { metadata: FROM });
    const mine = session(opened.sessionToken);
    await files.createDirectory({ path: "/plans" }, mine);
    assert.equal(await reasonOf(files.share({ path: "/plans", user: BOB }, mine)), "OK");
    const program = await door.person(await doors.password(ALICE));
    const byProgram = await files.registerClient(
      { ticket: await program.ticketFor("n1") },
      { metadata: FROM },
    );
    assert.equal(
      await reasonOf(files.share({ path: "/plans", user: BOB }, session(byProgram.sessionToken))),
      "NOT_OWNER",
    );
    for (let passedMs = 0; passedMs <= RECENT_SIGN_IN_MS; passedMs += 60_000) {
      doors.clock.advance(60_000);
      const ticket = await person.ticketFor("n1");
      await files.registerClient({ ticket, renewedSessionToken: opened.sessionToken }, { metadata: FROM });
    }
    assert.equal(await reasonOf(files.getAttr({ path: "/plans" }, mine)), "OK");
    assert.equal(
      await reasonOf(files.share({ path: "/plans", user: "carol@example.com" }, mine)),
      "NOT_OWNER",
    );
  },
);

test(
  "it makes, lists and revokes app passwords for ten minutes after the sign-in, which end with its door's",
  TIMEOUT,
  async (t) => {
    const doors = await startDoors(t);
    const door = await doors.door("d1");
    const metadata = { ...FROM, authorization: `Bearer ${await open(doors, door)}` };
    doors.clock.advance(RECENT_SIGN_IN_MS - 1_000);
    const { password, appPassword } = await door.meta.createAppPassword({ name: "phone" }, { metadata });
    assert.equal((await door.person(password)).username, ALICE);
    const { appPasswords } = await door.meta.listAppPasswords({}, { metadata });
    assert.deepEqual(
      appPasswords.map(({ name }) => name),
      ["phone"],
    );
    // A door that was taken over has seen it, so it ends with what was used there.
    const record = await doors.cluster.directory.findAppPassword(appPassword?.id ?? "");
    assert.deepEqual(Object.keys(record?.doors ?? {}), ["d1"]);
    doors.clock.advance(1_000);
    for (const call of [
      door.meta.createAppPassword({ name: "other" }, { metadata }),
      door.meta.listAppPasswords({}, { metadata }),
      door.meta.revokeAppPassword({ which: "phone" }, { metadata }),
    ])
      assert.equal(await reasonOf(call), "NOT_OWNER");
    const program = { metadata: { ...FROM, authorization: `Bearer ${password}` } };
    assert.equal(await reasonOf(door.meta.createAppPassword({ name: "more" }, program)), "NOT_OWNER");
    const again = { metadata: { ...FROM, authorization: `Bearer ${await open(doors, door)}` } };
    await door.meta.revokeAppPassword({ which: "phone" }, again);
    assert.equal(await reasonOf(door.person(password)), "TOKEN_REJECTED");
  },
);

test(
  "signing out ends a session, everywhere all of a person; a day without use ends one as well",
  TIMEOUT,
  async (t) => {
    const doors = await startDoors(t);
    const door = await doors.door("d1");
    const first = await open(doors, door);
    doors.clock.advance(2_000);
    const second = await open(doors, door);
    const bobs = await open(doors, door, BOB);
    const files = door.files();
    const person = await door.person(first);
    const opened = await files.registerClient({ ticket: await person.ticketFor("n1") }, { metadata: FROM });
    const mine = session(opened.sessionToken);
    await files.createDirectory({ path: "/plans" }, mine);
    await door.meta.endDoorSession({ secret: first }, { metadata: FROM });
    assert.equal(await reasonOf(door.person(first)), "TOKEN_REJECTED");
    await until(async () => {
      doors.clock.advance(500);
      return (await reasonOf(files.getAttr({ path: "/plans" }, mine))) !== "OK";
    }, "the end of the session at the FileServer");
    await door.meta.endDoorSession({ secret: second, everywhere: true }, { metadata: FROM });
    assert.equal(await reasonOf(door.person(second)), "TOKEN_REJECTED");
    assert.equal((await door.person(bobs)).username, BOB);
    assert.equal((await door.person(bobs)).address, AT);
    const password = await doors.password(ALICE);
    assert.equal(
      await reasonOf(door.meta.endDoorSession({ secret: password }, { metadata: FROM })),
      "TOKEN_REJECTED",
    );
    // At once: the timers of a whole day would start some hundred thousand calls.
    doors.clock.standStill(DOOR_SESSION_IDLE_MS + 300_001);
    assert.equal(await reasonOf(door.person(bobs)), "TOKEN_REJECTED");
  },
);
