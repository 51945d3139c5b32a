// The sessions of browsers that a person sees and ends, over real TLS: who may, what ends, and where.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isGroveError } from "#base/errors.ts";
import { stringify64 } from "#base/json64.ts";
import { silentLogger } from "#base/log.ts";
import { type ClusterSide, joinPeople } from "#door/process/cluster-side.ts";
import { DOOR_SESSION_IDLE_MS, RECENT_SIGN_IN_MS } from "#metaserver/process/app-passwords.ts";
import { until } from "#testing/until.ts";
import { StatusError } from "#wire/framing/status.ts";
import type { CallOptions } from "#wire/grpc/client-call.ts";
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
const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0";
/** Where the lost device is. */
const AWAY = "203.0.113.9";

/** Opens a session of a browser at a door; the clock stands a little further afterwards. */
async function open(
  doors: DoorsUnderTest,
  door: TestDoor,
  { email = ALICE, address = AT, userAgent = FIREFOX } = {},
): Promise<{ readonly secret: string; readonly id: string; readonly as: CallOptions }> {
  const from = { ...FROM, "svc-person-address": address };
  const idToken = idTokenOf(doors, email);
  const { secret } = await door.meta.openDoorSession({ idToken, userAgent }, { metadata: from });
  doors.clock.advance(1_000);
  return { secret, id: secret.slice(4, 16), as: bearer(secret, address) };
}

function bearer(secret: string, address = AT): CallOptions {
  return { metadata: { ...FROM, "svc-person-address": address, authorization: `Bearer ${secret}` } };
}

/** All that a refusal says. */
async function refusalOf(call: Promise<unknown>): Promise<unknown> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof StatusError, String(error));
    const { code, message, details, metadata } = error;
    return { code, message, details, reason: metadata.get("svc-reason") };
  }
  return assert.fail("it was not refused");
}

const byId = (id: string) => ({ which: { case: "id", value: id } as const });
const OTHERS = { which: { case: "others", value: true } as const };

test(
  "a person sees in which browsers they are signed in: since when, from where, and which one asks",
  TIMEOUT,
  async (t) => {
    const doors = await startDoors(t);
    const [d1, d2] = [await doors.door("d1"), await doors.door("d2")];
    const beganMs = doors.clock.wallMs();
    const first = await open(doors, d1);
    const second = await open(doors, d2, { address: AWAY, userAgent: "\u001b[2J<script>" });
    await open(doors, d1, { email: BOB });
    const { sessions } = await d1.meta.listBrowserSessions({}, first.as);
    assert.deepEqual(
      sessions.map(({ id, browser, address, current }) => ({ id, browser, address, current })),
      [
        { id: second.id, browser: "", address: AWAY, current: false },
        { id: first.id, browser: "Firefox 145 on Linux", address: AT, current: true },
      ],
    );
    const [, own] = sessions;
    assert.ok(own !== undefined);
    const weekMs = 7 * 24 * 3_600_000;
    assert.deepEqual(
      [Number(own.beganMs), Number(own.lastUsedMs), Number(own.endsMs)],
      [beganMs, beganMs, beganMs + weekMs].map(Math.trunc),
    );
    // A terminal is no browser, and sees the same ones.
    const user = doors.cluster.connect({ ca: doors.cluster.authority.certificatePem });
    const seen = (await user.listBrowserSessions({}, doors.signedIn(ALICE))).sessions;
    assert.deepEqual(
      seen.map(({ id, current }) => [id, current]),
      [
        [second.id, false],
        [first.id, false],
      ],
    );
    // A use is noted at most every five minutes.
    doors.clock.advance(290_000);
    const usedMs = async (): Promise<number> => {
      const listed = (await user.listBrowserSessions({}, doors.signedIn(ALICE))).sessions;
      return Number(listed.find(({ id }) => id === second.id)?.lastUsedMs);
    };
    const before = await usedMs();
    await d2.person(second.secret);
    assert.equal(await usedMs(), before);
    doors.clock.advance(20_000);
    await d2.person(second.secret);
    await until(async () => (await usedMs()) > before, "the use");
  },
);

test(
  "what is known is shown of a session from before, and none that opens nothing any more",
  TIMEOUT,
  async (t) => {
    const doors = await startDoors(t);
    const { directory } = doors.cluster;
    const door = await doors.door("d1");
    const first = await open(doors, door);
    const record = await directory.findDoorSession(first.id);
    assert.ok(record !== undefined);
    const nowMs = doors.clock.wallMs();
    const { address: _address, browser: _browser, ...former } = record;
    await directory.addDoorSession({ ...former, id: "fromearlier2" });
    await directory.addDoorSession({
      ...record,
      id: "unusedforaday",
      createdMs: nowMs - DOOR_SESSION_IDLE_MS - 1,
      lastUsedMs: nowMs - DOOR_SESSION_IDLE_MS - 1,
    });
    await directory.addDoorSession({ ...record, id: "anotherperson", subject: "somebody else" });
    const { sessions } = await door.meta.listBrowserSessions({}, first.as);
    assert.deepEqual(
      sessions.map(({ id, browser, address }) => [id, browser, address]),
      [
        ["fromearlier2", "", ""],
        [first.id, "Firefox 145 on Linux", AT],
      ],
    );
    for (const id of ["unusedforaday", "anotherperson"])
      assert.equal(await reasonOf(door.meta.endBrowserSessions(byId(id), first.as)), "BAD_ARGUMENT");
    const { ended } = await door.meta.endBrowserSessions(OTHERS, first.as);
    assert.deepEqual(
      ended.map(({ id }) => id),
      ["fromearlier2"],
    );
    assert.ok((await directory.findDoorSession("anotherperson")) !== undefined);
    // All of before are over once an operator has ended a person's sessions.
    const tokensFromMs = Math.trunc(doors.clock.wallMs());
    await directory.putUserStates([
      {
        username: ALICE,
        disabled: false,
        closesShares: false,
        version: tokensFromMs,
        reason: "a lost laptop",
        setBy: "administrator",
        setAtMs: tokensFromMs,
        tokensFromMs,
        issuer: record.issuer,
        subject: record.subject,
      },
    ]);
    doors.clock.advance(60_000);
    const last = await open(doors, door);
    await until(async () => (await reasonOf(door.person(first.secret))) === "TOKEN_REJECTED", "the end");
    const { sessions: left } = await door.meta.listBrowserSessions({}, last.as);
    assert.deepEqual(
      left.map(({ id }) => id),
      [last.id],
    );
  },
);

test(
  "a session that is ended from another browser opens nothing more at any door or FileServer",
  TIMEOUT,
  async (t) => {
    const doors = await startDoors(t);
    const [d1, d2] = [await doors.door("d1"), await doors.door("d2")];
    const mine = await open(doors, d1);
    const lost = await open(doors, d2, { address: AWAY });
    const bobs = await open(doors, d2, { email: BOB });
    const files = d2.files();
    const person = await d2.person(lost.secret);
    const ticket = await person.ticketFor("n1");
    const opened = await files.registerClient({ ticket }, { metadata: FROM });
    const its = session(opened.sessionToken);
    await files.createFile({ path: "/a", data: Buffer.from("x") }, its);
    const { ended } = await d1.meta.endBrowserSessions(byId(lost.id), mine.as);
    assert.deepEqual(
      ended.map(({ id, current }) => [id, current]),
      [[lost.id, false]],
    );
    for (const door of [d1, d2])
      assert.equal(await reasonOf(door.person(lost.secret)), "TOKEN_REJECTED", "at once");
    await until(async () => {
      doors.clock.advance(500);
      return (await reasonOf(files.getAttr({ path: "/a" }, its))) !== "OK";
    }, "the end of the session at the FileServer");
    assert.equal(await reasonOf(files.registerClient({ ticket }, { metadata: FROM })), "TOKEN_REJECTED");
    assert.equal(doors.n1.node.service.callers.doors.table.list(ALICE).length, 0);
    assert.equal((await d1.person(mine.secret)).username, ALICE);
    assert.equal((await d2.person(bobs.secret)).username, BOB);
    const lines = doors.cluster.logged.filter(({ event }) => event === "browser_session_ended");
    assert.equal(lines.length, 1);
    assert.ok(stringify64(lines).includes(AT) && stringify64(lines).includes(lost.id));

    // From a terminal all of them end, and another browser keeps the one that asks.
    const more = [await open(doors, d1), await open(doors, d2)];
    const all = await d1.meta.endBrowserSessions(OTHERS, mine.as);
    assert.deepEqual(all.ended.map(({ id }) => id).toSorted(), more.map(({ id }) => id).toSorted());
    assert.equal((await d1.person(mine.secret)).username, ALICE);
    const user = doors.cluster.connect({ ca: doors.cluster.authority.certificatePem });
    await user.endBrowserSessions(OTHERS, doors.signedIn(ALICE));
    assert.equal(await reasonOf(d1.person(mine.secret)), "TOKEN_REJECTED");
    assert.equal((await d2.person(bobs.secret)).username, BOB);
  },
);

test(
  "a door that ends a session lets it in no more at once, another door after five seconds",
  TIMEOUT,
  async (t) => {
    const doors = await startDoors(t);
    const [d1, d2] = [await doors.door("d1"), await doors.door("d2")];
    const sideOf = ({ tls: { ca, cert, key } }: TestDoor): ClusterSide => {
      assert.ok(typeof ca === "string" && typeof cert === "string" && typeof key === "string");
      const side = joinPeople({
        metaservers: [`127.0.0.1:${doors.cluster.port}`],
        tls: () => ({ ca, cert, key }),
        mock: false,
        clock: doors.clock,
        log: silentLogger,
      });
      t.after(() => side.close());
      return side;
    };
    const [here, there] = [sideOf(d1), sideOf(d2)];
    const mine = await open(doors, d1);
    const lost = await open(doors, d2);
    const enters = async (side: ClusterSide, secret: string): Promise<boolean> => {
      try {
        (await side.bySession(secret, AT)).release();
        return true;
      } catch (error) {
        assert.ok(isGroveError(error, "TOKEN_REJECTED"), String(error));
        return false;
      }
    };
    for (const side of [here, there]) assert.ok(await enters(side, lost.secret));
    const person = await here.bySession(mine.secret, AT);
    const ended = await person.sessions.end(lost.id);
    person.release();
    assert.equal(ended.length, 1);
    assert.equal(await enters(here, lost.secret), false);
    doors.clock.standStill(5_000);
    assert.equal(await enters(there, lost.secret), false);
    for (const side of [here, there]) assert.ok(await enters(side, mine.secret));
  },
);

test(
  "others, programs and old sign-ins neither see nor end a session: nothing changes, and the log names them",
  TIMEOUT,
  async (t) => {
    const doors = await startDoors(t);
    const { directory, logged, authority } = doors.cluster;
    const door = await doors.door("d1");
    const user = doors.cluster.connect({ ca: authority.certificatePem });
    const old = await open(doors, door, { address: AWAY });
    const oldToken = doors.signedIn(ALICE);
    const gone = await open(doors, door);
    await door.meta.endDoorSession({ secret: gone.secret }, { metadata: FROM });
    doors.clock.advance(RECENT_SIGN_IN_MS + 1_000);
    const alices = await open(doors, door);
    const bobs = await open(doors, door, { email: BOB, address: AWAY });
    const program = bearer(await doors.password(ALICE));
    const narrow = bearer(await doors.password(ALICE, { name: "narrow", folderId: "1z" }));
    const reader = bearer(await doors.password(ALICE, { name: "reader", readOnly: true }));
    const ids = async (): Promise<string> => {
      const kept = (await directory.doorSessionsOf(ALICE)).map(({ id }) => id);
      return stringify64([kept, await directory.revocations()]);
    };
    const before = await ids();
    type Row = [
      who: string,
      client: typeof user,
      as: CallOptions,
      list: string,
      end: string,
      isTold: boolean,
    ];
    const rows: readonly Row[] = [
      ["another person", door.meta, bobs.as, "OK", "BAD_ARGUMENT", true],
      ["another person's token", user, doors.signedIn(BOB), "OK", "BAD_ARGUMENT", true],
      ["an app password", door.meta, program, "NOT_OWNER", "NOT_OWNER", true],
      ["one for a folder", door.meta, narrow, "NOT_OWNER", "NOT_OWNER", true],
      ["one for reading", door.meta, reader, "NOT_OWNER", "NOT_OWNER", true],
      ["an old sign-in at a door", door.meta, old.as, "NOT_OWNER", "NOT_OWNER", true],
      ["an old ID token", user, oldToken, "TOKEN_REJECTED", "TOKEN_REJECTED", true],
      ["an ended session", door.meta, gone.as, "TOKEN_REJECTED", "TOKEN_REJECTED", false],
      ["no door", user, alices.as, "CLIENT_CERT_REQUIRED", "CLIENT_CERT_REQUIRED", false],
      ["nobody", user, {}, "TOKEN_REJECTED", "TOKEN_REJECTED", false],
    ];
    for (const [who, client, as, list, end, isTold] of rows) {
      const told = (): number => logged.filter(({ event }) => event === "credential_call_refused").length;
      const linesBefore = told();
      assert.equal(await reasonOf(client.listBrowserSessions({}, as)), list, who);
      assert.equal(await reasonOf(client.endBrowserSessions(byId(alices.id), as)), end, who);
      // To the letter as one that never was: ids of others are not to be guessed.
      const [foreign, none] = [alices.id, "aaaaaaaaaaaa"].map((id) =>
        refusalOf(client.endBrowserSessions(byId(id), as)),
      );
      assert.deepEqual(await foreign, await none, who);
      if (list !== "OK") assert.equal(await reasonOf(client.endBrowserSessions(OTHERS, as)), list, who);
      if (isTold) assert.ok(told() > linesBefore, who);
      const { sessions } = list === "OK" ? await client.listBrowserSessions({}, as) : { sessions: [] };
      assert.ok(!sessions.some(({ id }) => id === alices.id), who);
    }
    // A name for nothing ends nothing either.
    for (const which of [undefined, { case: "id", value: "" }, { case: "others", value: false }] as const) {
      const call = door.meta.endBrowserSessions(which === undefined ? {} : { which }, alices.as);
      assert.equal(await reasonOf(call), "BAD_ARGUMENT");
    }
    assert.equal(await ids(), before);
    const lines = logged.filter(({ event }) => event === "credential_call_refused");
    const ofOld = lines.find((line) => stringify64(line).includes(`browser:${old.id}`));
    assert.ok(ofOld !== undefined && stringify64(ofOld).includes(AWAY), "the person's address");
    assert.ok(!stringify64(logged).includes(alices.secret.slice(17)));
  },
);
