// Links over a real connection: what visitors without an account may do, how often, and until when.
import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";
import { inspect } from "node:util";
import { ManualClock } from "#base/clock.ts";
import { PERSON_ADDRESS_HEADER } from "#base/door-call.ts";
import { LAST_MOMENT_MS } from "#base/limits.ts";
import {
  LINK_PASSWORD_MAX_LENGTH,
  WRONG_LINK_PASSWORDS,
  WRONG_LINKS_PER_MINUTE,
  WRONG_PASSWORDS_PER_LINK,
} from "#fileserver/doors/link-sign-in.ts";
import { VISITORS_ADDRESS, visit } from "./links.fixture.ts";
import { refusal, startTestNode, type TestNode, type TestUser } from "./node.fixture.ts";

const ALICE = "alice@example.com";
const DATA = Buffer.from("0123456789");
const LATER_MS = 600_000;
const clock = new ManualClock();
const nodes: TestNode[] = [];
let node: TestNode;
let alice: TestUser;
let bob: TestUser;

beforeEach(async () => {
  node = await startTestNode({ clock });
  nodes.push(node);
  alice = await node.signIn(ALICE);
  bob = await node.signIn("bob@example.com");
  await alice.call.createDirectory({ path: "/d" });
  await alice.call.createDirectory({ path: "/d/sub" });
  await alice.call.createFile({ path: "/d/f", data: DATA });
  await alice.call.createFile({ path: "/d/sub/g", data: DATA });
  await alice.call.createFile({ path: "/secret", data: DATA });
  await alice.call.share({ path: "/d", user: bob.email });
});
after(() => Promise.all(nodes.map((one) => one.stop())));

const reasonOf = async (call: Promise<unknown>): Promise<string> => (await refusal(call)).reason;
const later = (): bigint => BigInt(Math.trunc(clock.wallMs()) + LATER_MS);
const dropLink = (limits: { maxBytes?: bigint; maxFiles?: bigint } = {}) =>
  alice.call.createLink({
    path: "/d/sub",
    drop: true,
    endsMs: later(),
    maxBytes: 100n,
    maxFiles: 10n,
    ...limits,
  });

test("a link to read opens its folder and no more, and names nobody", async () => {
  const { token, link } = await alice.call.createLink({ path: "/d" });
  assert.match(token, /^gl_[0-9a-z]{26}_[a-z2-7]{12}_[a-z2-7]{32}$/u);
  assert.deepEqual([link?.path, link?.drop, link?.hasPassword, link?.downloads], ["/d", false, false, 0n]);
  const visitor = await visit(node, { token });
  const { files, options } = visitor;
  assert.deepEqual([visitor.registered.link?.name, visitor.registered.link?.drop], ["d", false]);
  const top = await files.getAttr({ path: "/" }, options);
  assert.deepEqual(
    [top.path, top.owner, top.root, top.createdBy, top.parentId, top.shared, top.myPermissions],
    ["/", "", "", "", "", [], [0]],
  );
  const { entries } = await files.listDir({ path: "/" }, options);
  assert.deepEqual(
    entries.map(({ name, path }) => [name, path]),
    [
      ["f", "/f"],
      ["sub", "/sub"],
    ],
  );
  for (const { owner, createdBy, shared, parentId } of entries) {
    assert.deepEqual([owner, createdBy, shared, parentId], ["", "", [], ""]);
  }
  assert.equal(await visitor.read("/sub/g"), "0123456789");
  // Whatever root it names, it stays below its folder.
  assert.equal((await files.getAttr({ root: ALICE, path: "/f" }, options)).path, "/f");
  assert.equal(await reasonOf(files.getAttr({ root: ALICE, path: "/secret" }, options)), "NO_SUCH_PATH");
});

test("no other call is a visitor's, and no call of a visitor is another's", async () => {
  const { token } = await alice.call.createLink({ path: "/d" });
  const { files, options, registered, drop } = await visit(node, { token });
  for (const call of [
    () => files.createFile({ path: "/new", data: DATA }, options),
    () => files.createDirectory({ path: "/new" }, options),
    () => files.readFile({ path: "/f" }, options),
    () => files.writeFile({ path: "/f", data: DATA }, options),
    () => files.deleteFile({ path: "/f" }, options),
    () => files.trashFile({ path: "/f" }, options),
    () => files.showTrash({}, options),
    () => files.rename({ path: "/f", targetPath: "/g" }, options),
    () => files.copy({ path: "/f", targetPath: "/g" }, options),
    () => files.share({ path: "/", user: "eve@example.com" }, options),
    () => files.listShares({ path: "/" }, options),
    () => files.createLink({ path: "/f" }, options),
    () => files.listLinks({ path: "/" }, options),
    () => files.revokeLink({ id: registered.link?.id ?? "" }, options),
    () => files.getQuota({}, options),
    () => files.listSessions({}, options),
    () => files.lock({ path: "/f" }, options),
    () => files.explain({ path: "/f" }, options),
    () => files.beginUpload({ path: "/new", size: 4n }, options),
    () => drop("new", DATA),
  ]) {
    assert.equal(await reasonOf(call()), "NOT_SHARED");
  }
  // The session is the door's and a visitor's: not without the door, nor as a person's.
  const bare = { metadata: { authorization: `Bearer ${registered.sessionToken}` } };
  assert.equal(await reasonOf(files.getAttr({ path: "/" }, bare)), "SESSION_UNKNOWN");
  const asPerson = { metadata: { ...bare.metadata, [PERSON_ADDRESS_HEADER]: VISITORS_ADDRESS } };
  assert.equal(await reasonOf(files.getAttr({ path: "/" }, asPerson)), "SESSION_UNKNOWN");
  // A link counts through doors alone.
  assert.equal(
    await reasonOf(files.registerClient({ link: { token, visitor: "visitor000000001" } })),
    "CLIENT_CERT_REQUIRED",
  );
});

test("only the owner makes links, and no link opens a whole root", async () => {
  const make = (user: TestUser, wish: object) => reasonOf(user.call.createLink(wish));
  assert.equal(await make(bob, { root: ALICE, path: "/d/f" }), "NOT_OWNER");
  assert.equal(await make(alice, { path: "/" }), "BAD_ARGUMENT");
  assert.equal(await make(alice, { path: "/none" }), "NO_SUCH_PATH");
  assert.equal(await make(alice, { path: "/d/f", endsMs: 1n }), "BAD_ARGUMENT");
  const last = BigInt(LAST_MOMENT_MS);
  assert.equal(await make(alice, { path: "/d/f", endsMs: last + 1n }), "BAD_ARGUMENT");
  const { link: latest } = await alice.call.createLink({ path: "/d/f", endsMs: last });
  assert.equal(latest?.endsMs, last);
  await alice.call.revokeLink({ id: latest?.id ?? "" });
  assert.equal(await make(alice, { path: "/d", drop: true, endsMs: later() }), "BAD_ARGUMENT");
  assert.equal(
    await make(alice, { path: "/d/f", drop: true, endsMs: later(), maxBytes: 1n, maxFiles: 1n }),
    "NOT_DIRECTORY",
  );
  const { link } = await alice.call.createLink({ path: "/d/f" });
  const id = link?.id ?? "";
  assert.equal(await reasonOf(bob.call.revokeLink({ root: ALICE, id })), "NOT_OWNER");
  assert.equal(await reasonOf(bob.call.revokeLink({ id })), "NO_SUCH_PATH");
  assert.deepEqual(
    (await alice.call.listLinks({ path: "/d" })).links.map((one) => one.id),
    [id],
  );
  assert.deepEqual((await alice.call.listLinks({ path: "/d/sub" })).links, []);
});

test("a password is asked for, guesses end, and who knew it need not give it again", async () => {
  const { token, link } = await alice.call.createLink({ path: "/d/f", password: "açores" });
  assert.equal(link?.hasPassword, true);
  const asked = await refusal(visit(node, { token }));
  assert.equal(asked.reason, "TOKEN_REJECTED");
  assert.equal(asked.message, "this link asks for a password");
  // Written in another form of Unicode by another machine.
  const right = await visit(node, { token, password: "açores".normalize("NFD") });
  const pass = right.registered.link?.pass ?? "";
  assert.equal(await right.read("/"), "0123456789");
  assert.equal(await (await visit(node, { token, pass })).read("/"), "0123456789");
  assert.equal(await reasonOf(visit(node, { token, pass, visitor: "another000000001" })), "TOKEN_REJECTED");
  for (let guess = 0; guess < WRONG_LINK_PASSWORDS; guess++) {
    assert.equal(await reasonOf(visit(node, { token, password: `guess ${guess}` })), "TOKEN_REJECTED");
  }
  assert.equal(await reasonOf(visit(node, { token, password: "açores" })), "RATE_LIMITED");
  // Neither who has a pass nor who comes from elsewhere is shut out.
  assert.equal(await (await visit(node, { token, pass })).read("/"), "0123456789");
  await visit(node, { token, password: "açores" }, "203.0.113.9");
  clock.advance(43_200_001);
  assert.equal(await reasonOf(visit(node, { token, pass })), "TOKEN_REJECTED");
});

test("guessers on many networks use up a link's guesses, and shut out no network that was never wrong", async () => {
  const { token } = await alice.call.createLink({ path: "/d/f", password: "pear" });
  const networks = Array.from({ length: 12 }, (_, at) => `203.0.${at}.9`);
  // Wrong without the work of a hash.
  const tooLong = "a".repeat(LINK_PASSWORD_MAX_LENGTH + 1);
  const reasons = await Promise.all(
    networks.map(async (from) => {
      const own: (string | undefined)[] = [];
      for (let guess = 0; guess < WRONG_LINK_PASSWORDS; guess++)
        own.push(await reasonOf(visit(node, { token, password: tooLong }, from)));
      return own;
    }),
  );
  const judged = reasons.flat().filter((reason) => reason === "TOKEN_REJECTED");
  assert.equal(judged.length, WRONG_PASSWORDS_PER_LINK + networks.length);
  clock.advance(LATER_MS);
  const again = visit(node, { token, password: "pear" }, networks[0]);
  assert.equal(await reasonOf(again), "RATE_LIMITED");
  await visit(node, { token, password: "pear" }, "198.51.100.77");
  clock.advance(3_600_000);
  await visit(node, { token, password: "pear" }, networks[0]);
});

test("guessed tokens are limited for each network", async () => {
  const { token } = await alice.call.createLink({ path: "/d/f" });
  const wrong = `${token.slice(0, -4)}aaaa`;
  for (let guess = 0; guess < WRONG_LINKS_PER_MINUTE; guess++) {
    assert.equal(await reasonOf(visit(node, { token: wrong })), "TOKEN_REJECTED");
  }
  assert.equal(await reasonOf(visit(node, { token })), "RATE_LIMITED");
  await visit(node, { token }, "203.0.113.9");
  clock.advance(60_000);
  await visit(node, { token });
});

test("a limit of downloads is exact under 50 at once, and parts of one visitor count once in an hour", async () => {
  const { token } = await alice.call.createLink({ path: "/d/f", maxDownloads: 7n });
  const names = Array.from({ length: 50 }, (_, index) => `visitor${10_000_000_000 + index}`);
  const visitors = await Promise.all(names.map((name) => visit(node, { token, visitor: name })));
  const ends = await Promise.allSettled(visitors.map((visitor) => visitor.read("/")));
  assert.equal(ends.filter(({ status }) => status === "fulfilled").length, 7);
  const { links } = await alice.call.listLinks({ path: "/" });
  assert.equal(links[0]?.downloads, 7n);
  const at = ends.findIndex(({ status }) => status === "fulfilled");
  const [served, name] = [visitors[at], names[at]];
  assert.ok(served !== undefined && name !== undefined);
  // Going on with what was counted needs no place; the whole file again does.
  assert.equal(await served.read("/", { offset: 4n }), "456789");
  assert.equal(await served.read("/", { length: 3n }), "012");
  const again = await refusal(served.read("/"));
  assert.deepEqual([again.reason, again.message], ["NOT_SHARED", "this link is used up: it allows no more"]);
  clock.advance(3_600_000);
  const back = await visit(node, { token, visitor: name });
  assert.equal(await reasonOf(back.read("/", { offset: 4n })), "NOT_SHARED");
});

test("repeats of one request count once in an hour, for its visitor and file alone", async () => {
  const { token } = await alice.call.createLink({ path: "/d", maxDownloads: 3n });
  const downloads = async (): Promise<bigint | undefined> =>
    (await alice.call.listLinks({ path: "/" })).links[0]?.downloads;
  const first = await visit(node, { token });
  const second = await visit(node, { token, visitor: "another000000001" });
  // Two requests of one visitor are under way at once, and either may break.
  for (const requestKey of ["a", "b", "a", "b", "a"]) {
    assert.equal(await first.read("/f", { requestKey }), "0123456789");
  }
  assert.equal(await downloads(), 2n);
  const ends = await Promise.allSettled(
    Array.from({ length: 50 }, () => second.read("/f", { requestKey: "a" })),
  );
  assert.ok(ends.every(({ status }) => status === "fulfilled"));
  assert.equal(await downloads(), 3n);
  assert.equal(await first.read("/f", { requestKey: "b" }), "0123456789");
  const others = [
    first.read("/f", { requestKey: "c" }),
    first.read("/f"),
    first.read("/sub/g", { requestKey: "a" }),
    second.read("/f", { requestKey: "b" }),
  ];
  for (const other of others) assert.equal(await reasonOf(other), "NOT_SHARED");
  clock.advance(3_600_000);
  const back = await visit(node, { token });
  assert.equal(await reasonOf(back.read("/f", { requestKey: "a" })), "NOT_SHARED");
});

test("a link ends when it says so, when it is revoked, and with its file; it goes along with moves", async () => {
  const ending = await alice.call.createLink({ path: "/d/f", endsMs: later() });
  const revoked = await alice.call.createLink({ path: "/d" });
  const removed = await alice.call.createLink({ path: "/d/sub/g" });
  const a = await visit(node, { token: revoked.token });
  const b = await visit(node, { token: removed.token });
  await alice.call.createDirectory({ path: "/else" });
  await alice.call.rename({ path: "/d", targetPath: "/else/d2" });
  assert.equal(await a.read("/f"), "0123456789");
  assert.equal(await b.read("/"), "0123456789");
  await alice.call.revokeLink({ id: revoked.link?.id ?? "" });
  assert.equal(await reasonOf(a.read("/f")), "SESSION_UNKNOWN");
  assert.equal(await reasonOf(visit(node, { token: revoked.token })), "TOKEN_REJECTED");
  // In the trash it opens nothing, and it does not come back from there.
  const { item } = await alice.call.trashFile({ path: "/else/d2/sub" });
  assert.equal(await reasonOf(b.read("/")), "NOT_SHARED");
  await alice.call.restoreFile({ trashId: item?.trashId ?? "" });
  assert.equal(await reasonOf(visit(node, { token: removed.token })), "TOKEN_REJECTED");
  await visit(node, { token: ending.token });
  clock.advance(LATER_MS);
  assert.equal(await reasonOf(visit(node, { token: ending.token })), "TOKEN_REJECTED");
});

test("what is dropped never replaces, is not seen again, and keeps to the limits", async () => {
  const { token } = await dropLink({ maxFiles: 4n });
  const visitor = await visit(node, { token });
  const { files, options } = visitor;
  for (let time = 0; time < 2; time++) {
    assert.deepEqual(await visitor.drop("g", Buffer.from("dropped")), {
      $typeName: "grove.v1.UploadResponse",
      bytesWritten: 7n,
      quotaUsed: 0n,
      quotaLimit: 0n,
      uploadId: "",
    });
  }
  for (const look of [
    () => files.getAttr({ path: "/" }, options),
    () => files.getAttr({ path: "/g" }, options),
    () => files.listDir({ path: "/" }, options),
    () => visitor.read("/g"),
  ]) {
    assert.equal(await reasonOf(look()), "NOT_SHARED");
  }
  const there = (await alice.call.listDir({ path: "/d/sub" })).entries;
  assert.equal(there.length, 3);
  assert.equal(Buffer.from((await alice.call.readFile({ path: "/d/sub/g" })).data).toString(), "0123456789");
  assert.deepEqual(
    there.filter(({ name }) => name !== "g").map(({ createdBy }) => createdBy.slice(0, 5)),
    ["link:", "link:"],
  );
  // A failed one counts for nothing; more bytes or files than allowed are refused before they come.
  assert.equal(await reasonOf(visitor.drop("a/b", DATA)), "BAD_NAME");
  const big = await refusal(visitor.drop("big", Buffer.alloc(87)));
  assert.equal(big.message, "this file is larger than what this link still takes");
  await visitor.drop("h", Buffer.alloc(86));
  await visitor.drop("empty", Buffer.alloc(0));
  const more = await refusal(visitor.drop("more", Buffer.alloc(0)));
  assert.equal(more.message, "this link is used up: it allows no more");
  const link = (await alice.call.listLinks({ path: "/" })).links[0];
  assert.deepEqual([link?.bytes, link?.files], [100n, 4n]);
});

test("50 drops of one name at once are all kept, up to the limit to the byte", async () => {
  const { token } = await dropLink({ maxBytes: 200n, maxFiles: 100n });
  const visitor = await visit(node, { token });
  const ends = await Promise.allSettled(Array.from({ length: 50 }, () => visitor.drop("same", DATA)));
  assert.equal(ends.filter(({ status }) => status === "fulfilled").length, 20);
  const { entries } = await alice.call.listDir({ path: "/d/sub" });
  assert.equal(entries.filter(({ name }) => name.startsWith("same")).length, 20);
});

test("the owner's quota is paid, and its figures are the owner's alone", async () => {
  const admin = await startTestNode({ clock, env: { SVC_ADMIN_EMAIL: "root@example.com" } });
  nodes.push(admin);
  const owner = await admin.signIn(ALICE);
  const root = await admin.signIn("root@example.com");
  await owner.call.createDirectory({ path: "/in" });
  const wish = { path: "/in", drop: true, endsMs: later(), maxBytes: 100_000n, maxFiles: 10n };
  const { token } = await owner.call.createLink(wish);
  await root.call.setQuota({ username: ALICE, quotaBytes: 1_000n });
  const visitor = await visit(admin, { token });
  await visitor.drop("fits", Buffer.alloc(900));
  assert.equal((await owner.call.getQuota({})).usedBytes, 900n);
  const refused = await refusal(visitor.drop("more", Buffer.alloc(101)));
  assert.equal(refused.message, "there is no room for it at the moment");
  const said = inspect(refused.error, { depth: 9 });
  assert.deepEqual(
    ["900", "1000", "alice"].filter((figure) => said.includes(figure)),
    [],
  );
  const link = (await owner.call.listLinks({ path: "/" })).links[0];
  assert.deepEqual([link?.bytes, link?.files], [900n, 1n]);
});
