// Doors at FileServers over real TLS: whom a ticket lets in, what its session may do, and what ends it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { DOOR_SESSION_ALONE_MS } from "#fileserver/doors/door-sessions.ts";
import { until } from "#testing/until.ts";
import { AT, type DoorsUnderTest, FROM, reasonOf, session, startDoors } from "./doors.fixture.ts";

const TIMEOUT = { timeout: 120_000 };
const ALICE = "alice@example.com";

test(
  "a person works through a door as by a sign-in, with sessions of its own and the person's address",
  TIMEOUT,
  async (t) => {
    const doors = await startDoors(t);
    const door = await doors.door("d1");
    const person = await door.person(await doors.password(ALICE));
    const files = door.files();
    const ticket = await person.ticketFor("n1");
    const opened = await files.registerClient({ ticket }, { metadata: FROM });
    assert.equal(opened.username, ALICE);
    const mine = session(opened.sessionToken);
    await files.createFile({ path: "/a", data: Buffer.from("x") }, mine);
    for (let at = 0; at < 7; at++) {
      const { sessionsOpen } = await files.registerClient({ ticket }, { metadata: FROM });
      assert.equal(sessionsOpen, at + 2);
    }
    await files.getAttr({ path: "/a" }, mine);
    // The person's five sign-ins have all their places.
    const direct = doors.files({ ca: doors.cluster.authority.certificatePem });
    const { sessionsOpen, sessionToken } = await direct.registerClient({}, doors.signedIn(ALICE));
    assert.equal(sessionsOpen, 1);
    // A sign-in's session is of no use to a door, nor a door's to a sign-in.
    assert.equal(await reasonOf(files.getAttr({ path: "/a" }, session(sessionToken))), "SESSION_UNKNOWN");
    assert.equal(await reasonOf(direct.getAttr({ path: "/a" }, mine)), "SESSION_UNKNOWN");
    const opens = await doors.audited(doors.n1, '"session.open"', 9);
    assert.match(opens[0] ?? "", new RegExp(`"address":"${AT}"`));
    assert.match(opens[0] ?? "", /"door":"d1"/);
  },
);

test(
  "a ticket of another door, another server, or of before, or shown by anybody else, opens nothing and is audited",
  TIMEOUT,
  async (t) => {
    const doors = await startDoors(t);
    const [d1, d2] = [await doors.door("d1"), await doors.door("d2")];
    const password = await doors.password(ALICE);
    const person = await d1.person(password);
    const ticket = await person.ticketFor("n1");
    const options = { metadata: FROM };
    const ca = doors.cluster.authority.certificatePem;
    const node = await doors.cluster.authority.issueNodeCertificate({ id: "n9" });
    const tries: [string, () => Promise<unknown>, string][] = [
      ["another door", () => d2.files().registerClient({ ticket }, options), "TOKEN_REJECTED"],
      ["another server", () => d1.files(doors.n2).registerClient({ ticket }, options), "TOKEN_REJECTED"],
      ["nobody", () => doors.files({ ca }).registerClient({ ticket }), "CLIENT_CERT_REQUIRED"],
      [
        "a node",
        () =>
          doors
            .files({ ca, cert: node.certificatePem, key: node.keyPem })
            .registerClient({ ticket }, options),
        "CLIENT_CERT_REQUIRED",
      ],
      [
        "the password itself",
        () => d1.files().registerClient({ ticket: password }, options),
        "TOKEN_REJECTED",
      ],
      ["an ID token at a door", () => d1.files().registerClient({}, doors.signedIn(ALICE)), "TOKEN_REJECTED"],
      [
        "the password as an ID token",
        () => doors.files({ ca }).registerClient({}, { metadata: { authorization: `Bearer ${password}` } }),
        "TOKEN_REJECTED",
      ],
    ];
    for (const [who, call, reason] of tries) assert.equal(await reasonOf(call()), reason, who);
    doors.clock.advance(300_001);
    assert.equal(await reasonOf(d1.files().registerClient({ ticket }, options)), "TOKEN_REJECTED");
    for (const { node: served } of [doors.n1, doors.n2]) {
      assert.equal(served.storage.root(ALICE), undefined, "nothing was made");
      assert.equal(served.service.callers.doors.table.openCount, 0);
    }
    const lines = await doors.audited(doors.n1, '"door.refused"', 4);
    assert.equal(lines.length, 4, lines.join("\n"));
    for (const line of lines) assert.match(line, new RegExp(`"address":"(?:${AT}|127.0.0.1)"`));
  },
);

test(
  "a door's session is of no use to another door, which is a security event with the person's address",
  TIMEOUT,
  async (t) => {
    const doors = await startDoors(t);
    const [d1, d2] = [await doors.door("d1"), await doors.door("d2")];
    const person = await d1.person(await doors.password(ALICE));
    const ticket = await person.ticketFor("n1");
    const { sessionToken } = await d1.files().registerClient({ ticket }, { metadata: FROM });
    assert.equal(await reasonOf(d2.files().getQuota({}, session(sessionToken))), "IP_MISMATCH");
    assert.equal(await reasonOf(d1.files().getQuota({}, session(sessionToken))), "OK");
    const [line = ""] = await doors.audited(doors.n1, '"ip_mismatch"', 1);
    assert.ok(line.includes(AT), line);
  },
);

test(
  "a session ends with its ticket unless another renews it, and at once when the password is revoked",
  TIMEOUT,
  async (t) => {
    const doors = await startDoors(t);
    const { clock, cluster, n1 } = doors;
    const door = await doors.door("d1");
    const files = door.files();
    const password = await doors.password(ALICE);
    const person = await door.person(password);
    const open = async (): Promise<string> =>
      (await files.registerClient({ ticket: await person.ticketFor("n1") }, { metadata: FROM })).sessionToken;
    const [ends, renewed] = [await open(), await open()];
    const { news } = { news: n1.node.service.callers.doors };
    clock.advance(280_000);
    const other = await door.person(await doors.password(ALICE, { name: "other" }));
    const foreign = files.registerClient(
      { ticket: await other.ticketFor("n1"), renewedSessionToken: renewed },
      { metadata: FROM },
    );
    assert.equal(await reasonOf(foreign), "SESSION_UNKNOWN");
    const ticket = await person.ticketFor("n1");
    await files.registerClient({ ticket, renewedSessionToken: renewed }, { metadata: FROM });
    await until(async () => {
      clock.advance(2_500);
      return (await reasonOf(files.getQuota({}, session(ends)))) !== "OK";
    });
    assert.equal(await reasonOf(files.getQuota({}, session(renewed))), "OK");
    await cluster.directory.revokeAppPassword(ALICE, "laptop", clock.wallMs());
    await until(() => {
      clock.advance(500);
      return news.table.list(ALICE).length === 0;
    });
    assert.notEqual(await reasonOf(files.getQuota({}, session(renewed))), "OK");
    assert.equal(await reasonOf(files.registerClient({ ticket }, { metadata: FROM })), "TOKEN_REJECTED");
  },
);

test(
  "while no MetaServer is reached, running sessions last an hour and no new one begins",
  TIMEOUT,
  async (t) => {
    const doors = await startDoors(t);
    const { clock } = doors;
    const door = await doors.door("d1");
    const files = door.files();
    const person = await door.person(await doors.password(ALICE));
    const ticket = await person.ticketFor("n1");
    const { sessionToken } = await files.registerClient({ ticket }, { metadata: FROM });
    await doors.cluster.stop();
    clock.advance(20_000);
    assert.equal(await reasonOf(files.registerClient({ ticket }, { metadata: FROM })), "STORE_UNAVAILABLE");
    for (let part = 0; part < 4; part++) {
      assert.equal(await reasonOf(files.getQuota({}, session(sessionToken))), "OK");
      clock.advance(DOOR_SESSION_ALONE_MS / 4 - 10_000);
    }
    assert.equal(await reasonOf(files.getQuota({}, session(sessionToken))), "OK");
    clock.advance(40_000);
    assert.notEqual(await reasonOf(files.getQuota({}, session(sessionToken))), "OK");
  },
);

async function scoped(
  doors: DoorsUnderTest,
  wish: object,
): Promise<{ call: Awaited<ReturnType<typeof open>> }> {
  const open = async () => {
    const door = await doors.door("d1");
    const person = await door.person(await doors.password(ALICE, wish));
    const files = door.files();
    const ticket = await person.ticketFor("n1");
    const opened = await files.registerClient({ ticket }, { metadata: FROM });
    return { files, opened, mine: session(opened.sessionToken) };
  };
  return { call: await open() };
}

test(
  "a password for reading, or below one folder, reaches nothing else, whatever its person may",
  TIMEOUT,
  async (t) => {
    const doors = await startDoors(t);
    const direct = doors.files({ ca: doors.cluster.authority.certificatePem });
    const { sessionToken } = await direct.registerClient({}, doors.signedIn(ALICE));
    const own = { metadata: { authorization: `Bearer ${sessionToken}` } };
    const folder = await direct.createDirectory({ path: "/work" }, own);
    await direct.createFile({ path: "/work/in", data: Buffer.from("in") }, own);
    await direct.createFile({ path: "/out", data: Buffer.from("out") }, own);
    const before = JSON.stringify((await direct.listDir({ path: "/" }, own)).entries.map(({ etag }) => etag));

    const read = (await scoped(doors, { name: "read", readOnly: true })).call;
    assert.equal(await reasonOf(read.files.readFile({ path: "/out" }, read.mine)), "OK");
    assert.equal(
      await reasonOf(read.files.createFile({ path: "/n", data: Buffer.alloc(0) }, read.mine)),
      "NOT_OWNER",
    );
    assert.equal(await reasonOf(read.files.trashFile({ path: "/out" }, read.mine)), "NOT_OWNER");
    assert.equal(
      await reasonOf(read.files.rename({ path: "/out", targetPath: "/o" }, read.mine)),
      "NOT_OWNER",
    );
    assert.equal(
      await reasonOf(read.files.share({ path: "/out", user: "b@example.com" }, read.mine)),
      "NOT_OWNER",
    );
    assert.equal(await reasonOf(read.files.listSessions({}, read.mine)), "NOT_OWNER");
    assert.equal(await reasonOf(read.files.endSession({ everywhere: true }, read.mine)), "NOT_OWNER");
    const why = await read.files.explain({ path: "/out", permission: 2 }, read.mine);
    assert.deepEqual(
      [why.allowed, why.steps.at(-1)?.check, why.steps.at(-1)?.passed],
      [false, "scope", false],
    );

    const below = (await scoped(doors, { name: "below", folderId: folder.id })).call;
    assert.equal(below.opened.folderPath, "/work");
    assert.equal(await reasonOf(below.files.readFile({ path: "/work/in" }, below.mine)), "OK");
    for (const call of [
      () => below.files.readFile({ path: "/out" }, below.mine),
      () => below.files.listDir({ path: "/" }, below.mine),
      () => below.files.createFile({ path: "/n", data: Buffer.alloc(0) }, below.mine),
      () => below.files.rename({ path: "/work/in", targetPath: "/in" }, below.mine),
      () => below.files.rename({ path: "/work", targetPath: "/w" }, below.mine),
      () => below.files.trashFile({ path: "/work" }, below.mine),
      () => below.files.showTrash({}, below.mine),
      () => below.files.copy({ path: "/out", targetPath: "/work/out" }, below.mine),
      () => below.files.getAttr({ root: "bob@example.com", path: "/" }, below.mine),
    ])
      assert.equal(await reasonOf(call()), "NOT_SHARED");
    const { entries } = await direct.listDir({ path: "/" }, own);
    assert.equal(JSON.stringify(entries.map(({ etag }) => etag)), before, "nothing changed");
    // The credential follows its folder.
    await direct.rename({ path: "/work", targetPath: "/moved" }, own);
    assert.equal(await reasonOf(below.files.readFile({ path: "/moved/in" }, below.mine)), "OK");
    await direct.createDirectory({ path: "/work" }, own);
    assert.equal(await reasonOf(below.files.listDir({ path: "/work" }, below.mine)), "NOT_SHARED");
    const lines = await doors.audited(doors.n1, '"door.refused"', 10);
    assert.ok(
      lines.every((line) => line.includes(AT)),
      lines.join("\n"),
    );
  },
);

test("no password makes an administrator at a door", TIMEOUT, async (t) => {
  const doors = await startDoors(t);
  const { call } = await scoped(doors, {});
  const answer = await call.files.setQuota({ username: ALICE, quotaBytes: 1n }, call.mine);
  assert.equal(answer.success, false);
});
