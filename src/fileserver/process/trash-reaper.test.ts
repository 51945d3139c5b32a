// The reaper purges expired items, and for space the oldest of the largest users, never young ones (D14).
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { DAY_MS } from "#base/duration.ts";
import { DISK_RESERVE_BYTES, TRASH_PURGE_BATCH } from "#base/limits.ts";
import { silentLogger } from "#base/log.ts";
import { Changes } from "#fileserver/operations/changes.ts";
import {
  TRASH_SETTLE_MS,
  TRASH_SPACE_MARGIN_BYTES,
  TrashReaper,
} from "#fileserver/operations/trash-reaper.ts";
import { AUDIT_FLUSH_INTERVAL_MS } from "#security/audit/audit-log.ts";
import { until } from "#testing/until.ts";
import { withLateRows } from "./late-rows.fixture.ts";
import { startTestNode, type TestNode, type TestUser } from "./node.fixture.ts";

const HOUR_MS = 3_600_000;
const MOVE_ID = "01J0000000000000000000000M";
const ENOUGH = DISK_RESERVE_BYTES + TRASH_SPACE_MARGIN_BYTES;

interface Rig {
  readonly node: TestNode;
  readonly clock: ManualClock;
}

async function rig(t: TestContext, trashRetentionMs: number): Promise<Rig> {
  const clock = new ManualClock();
  const node = await startTestNode({
    clock,
    options: { trashRetentionMs },
    env: { SVC_ADMIN_EMAIL: "admin@example.com" },
  });
  t.after(() => node.stop());
  return { node, clock };
}

async function trashed(user: TestUser, name: string, bytes = 1_000): Promise<void> {
  await user.call.createFile({ path: `/${name}`, data: Buffer.alloc(bytes, name) });
  await user.call.trashFile({ path: `/${name}` });
}

/** Sessions end meanwhile, so the trash is read from storage. */
const left = ({ node }: Rig, ...owners: string[]): string[] =>
  owners
    .flatMap((owner) =>
      node.node.storage
        .listTrash(owner, { limit: 1_000, pageToken: "" })
        .items.map(({ originalPath }) => `${owner.split("@")[0]}${originalPath}`),
    )
    .toSorted();

/** Actor and subject of one act's audit lines, once there are enough; writes come in groups. */
async function audited({ node, clock }: Rig, act: string, lines = 1): Promise<string[]> {
  for (;;) {
    clock.advance(AUDIT_FLUSH_INTERVAL_MS);
    const reply = await fetch(`http://127.0.0.1:${node.node.metricsPort}/audit`);
    const { entries } = (await reply.json()) as {
      entries: { act: string; actor: string; subject: string }[];
    };
    const found = entries.filter((entry) => entry.act === act);
    if (found.length >= lines) return found.map(({ actor, subject }) => `${actor} ${subject}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function setQuota({ node }: Rig, username: string, quotaBytes: bigint): Promise<void> {
  const admin = await node.signIn("admin@example.com");
  assert.ok((await admin.call.setQuota({ username, quotaBytes })).success);
}

test("what has been in the trash for the retention goes, on both sides of the hour, and is audited (D14)", async (t) => {
  const it = await rig(t, 30 * DAY_MS);
  const user = await it.node.signIn("a@example.com");
  await trashed(user, "old");
  it.clock.sleep(HOUR_MS / 2);
  await trashed(await it.node.signIn("a@example.com"), "young");
  // Nothing is due a moment before.
  it.clock.sleep(30 * DAY_MS - HOUR_MS);
  await it.node.node.service.trashReaper.expire();
  assert.deepEqual(left(it, "a@example.com"), ["a/old", "a/young"]);
  it.clock.sleep(HOUR_MS / 2 + 1);
  await it.node.node.service.trashReaper.expire();
  assert.deepEqual(left(it, "a@example.com"), ["a/young"]);
  assert.equal(it.node.node.service.usage.of("a@example.com")?.trashBytes, 1_000);
  it.clock.advance(1_000);
  assert.deepEqual(await audited(it, "trash.expire"), ["node a@example.com:/old"]);
});

test("a retention of 0 keeps everything while there is space (D14)", async (t) => {
  const it = await rig(t, 0);
  await trashed(await it.node.signIn("a@example.com"), "f");
  it.clock.sleep(400 * DAY_MS);
  await it.node.node.service.trashReaper.expire();
  await it.node.node.service.trashReaper.makeRoom();
  assert.deepEqual(left(it, "a@example.com"), ["a/f"]);
});

test("space is made from what has expired, then from the oldest of users above 80 % of their quota, until there is enough (D14)", async (t) => {
  const it = await rig(t, 0);
  const [a, b, c] = await Promise.all(
    ["a@example.com", "b@example.com", "c@example.com"].map((email) => it.node.signIn(email)),
  );
  assert.ok(a && b && c);
  await trashed(a, "1");
  it.clock.sleep(HOUR_MS / 30);
  await trashed(b, "2");
  it.clock.sleep(HOUR_MS / 30);
  await trashed(c, "3");
  it.clock.sleep(HOUR_MS / 30);
  await trashed(a, "4");
  await setQuota(it, "a@example.com", 2_400n);
  await setQuota(it, "b@example.com", 1_100n);
  it.clock.sleep(23 * HOUR_MS);
  const reaper = it.node.node.service.trashReaper;
  it.node.disk.freeBytes = ENOUGH - 1n;
  await reaper.makeRoom();
  // Nothing is a day old yet.
  assert.deepEqual(left(it, "a@example.com", "b@example.com", "c@example.com"), ["a/1", "a/4", "b/2", "c/3"]);
  it.clock.sleep(2 * HOUR_MS);
  it.node.disk.freeBytes = ENOUGH;
  await reaper.makeRoom();
  assert.deepEqual(left(it, "a@example.com").length, 2);
  it.node.disk.freeBytes = ENOUGH - 500n;
  await reaper.makeRoom();
  // The oldest, a's, is enough; c is below its share, and a now too.
  assert.deepEqual(left(it, "a@example.com", "b@example.com", "c@example.com"), ["a/4", "b/2", "c/3"]);
  await reaper.makeRoom();
  // The disk has its time to show the freed space.
  assert.deepEqual(left(it, "b@example.com"), ["b/2"]);
  it.clock.advance(60_000);
  // Lets the timers' actions end first.
  await new Promise(setImmediate);
  await reaper.makeRoom();
  assert.deepEqual(left(it, "a@example.com", "b@example.com", "c@example.com"), ["a/4", "c/3"]);
  it.clock.advance(1_000);
  assert.deepEqual(await audited(it, "trash.space", 2), ["node a@example.com:/1", "node b@example.com:/2"]);
  it.clock.advance(60_000);
  // Lets the timers' actions end first.
  await new Promise(setImmediate);
  it.node.disk.freeBytes = 0n;
  await reaper.makeRoom();
  // Users far below their quota keep their trash, however full the disk.
  assert.deepEqual(left(it, "a@example.com", "c@example.com"), ["a/4", "c/3"]);
});

test("for space what has expired goes first, from users who hold little too (D14)", async (t) => {
  const it = await rig(t, 2 * DAY_MS);
  const a = await it.node.signIn("a@example.com");
  await trashed(a, "expired");
  await setQuota(it, "a@example.com", 10_000n);
  it.clock.sleep(2 * DAY_MS - HOUR_MS);
  const b = await it.node.signIn("b@example.com");
  await trashed(b, "full");
  await setQuota(it, "b@example.com", 1_000n);
  it.node.disk.freeBytes = ENOUGH - 1n;
  // Past the retention of the first; the second is above its share and too young.
  it.clock.sleep(2 * HOUR_MS);
  await it.node.node.service.trashReaper.makeRoom();
  assert.deepEqual(left(it, "a@example.com", "b@example.com"), ["b/full"]);
});

test("a wall clock that jumps ahead purges nothing for a day (D14)", async (t) => {
  const it = await rig(t, 30 * DAY_MS);
  await trashed(await it.node.signIn("a@example.com"), "f");
  it.clock.jumpWall(365 * DAY_MS);
  const reaper = it.node.node.service.trashReaper;
  await reaper.expire();
  it.clock.sleep(23 * HOUR_MS);
  await reaper.expire();
  assert.deepEqual(left(it, "a@example.com"), ["a/f"]);
  it.clock.jumpWall(-365 * DAY_MS);
  it.clock.sleep(2 * HOUR_MS);
  await reaper.expire();
  assert.deepEqual(left(it, "a@example.com"), ["a/f"]);
  it.clock.sleep(30 * DAY_MS);
  await reaper.expire();
  assert.deepEqual(left(it, "a@example.com"), []);
});

test("who empties the trash empties it of what a clock that was ahead has dated, too, and of nothing that comes meanwhile (D14)", async (t) => {
  const it = await rig(t, 30 * DAY_MS);
  const user = await it.node.signIn("a@example.com");
  await trashed(user, "old");
  it.clock.jumpWall(HOUR_MS);
  const names = Array.from({ length: TRASH_PURGE_BATCH + 6 }, (_, at) => `f${at}`);
  for (const name of names) await trashed(user, name, 10);
  it.clock.jumpWall(-HOUR_MS);
  await user.call.createFile({ path: "/late", data: Buffer.from("x") });
  const purged = user.call.purgeTrash({});
  await until(() => left(it, "a@example.com").length <= names.length);
  it.clock.jumpWall(1);
  await user.call.trashFile({ path: "/late" });
  assert.deepEqual((await purged).purgedItems, BigInt(names.length + 1));
  assert.deepEqual(left(it, "a@example.com"), ["a/late"]);
});

test("a root that moves away keeps its trash for now, and keeps no other's from going by age or for space (D14)", async (t) => {
  const it = await rig(t, 30 * DAY_MS);
  const [a, b] = await Promise.all(["a@example.com", "b@example.com"].map((email) => it.node.signIn(email)));
  assert.ok(a && b);
  // The frozen root's own fill more than one look at the oldest.
  for (let item = 0; item <= TRASH_PURGE_BATCH; item++) await trashed(a, `${item}`, 10);
  await trashed(b, "expired");
  const { storage } = it.node.node;
  await storage.moves.beginExport({ moveId: MOVE_ID, owner: "a@example.com" });
  await storage.moves.freeze(MOVE_ID);
  it.clock.sleep(30 * DAY_MS + 1);
  const reaper = it.node.node.service.trashReaper;
  await reaper.expire();
  assert.deepEqual(left(it, "b@example.com"), []);
  assert.equal(storage.root("a@example.com")?.usage.trashInodes, TRASH_PURGE_BATCH + 1);
  await trashed(await it.node.signIn("b@example.com"), "aged");
  await setQuota(it, "a@example.com", 100n);
  await setQuota(it, "b@example.com", 100n);
  it.clock.sleep(DAY_MS + 1);
  it.node.disk.freeBytes = ENOUGH - 1n;
  await reaper.makeRoom();
  assert.deepEqual(left(it, "b@example.com"), []);
  assert.equal(storage.root("a@example.com")?.usage.trashInodes, TRASH_PURGE_BATCH + 1);
});

/** The reaper of a node that starts now, on a filling disk. */
function restarted(t: TestContext, it: Rig, storage: TestNode["node"]["storage"]): TrashReaper {
  const { service } = it.node.node;
  const reaper = new TrashReaper({
    storage,
    changes: new Changes({ ledger: service.ledger, usage: service.usage, audit: () => {} }),
    usage: service.usage,
    quotaBytes: () => 100n,
    freeBytes: () => ENOUGH - 1_000_000n,
    reserveBytes: DISK_RESERVE_BYTES,
    retentionMs: 30 * DAY_MS,
    clock: it.clock,
    audit: () => {},
    log: silentLogger,
  });
  t.after(() => reaper.stop());
  return reaper;
}

test("a node that starts with a clock that is ahead purges nothing before that is set right (D14)", async (t) => {
  const it = await rig(t, 0);
  const user = await it.node.signIn("a@example.com");
  for (const name of ["1", "2"]) await trashed(user, name);
  it.clock.jumpWall(365 * DAY_MS);
  const reaper = restarted(t, it, it.node.node.storage);
  it.clock.sleep(TRASH_SETTLE_MS - 1);
  await reaper.expire();
  await reaper.makeRoom();
  assert.deepEqual(left(it, "a@example.com"), ["a/1", "a/2"]);
  it.clock.jumpWall(-365 * DAY_MS);
  it.clock.sleep(1);
  await reaper.makeRoom();
  assert.deepEqual(left(it, "a@example.com"), ["a/1", "a/2"]);
  it.clock.sleep(DAY_MS);
  await reaper.makeRoom();
  assert.deepEqual(left(it, "a@example.com"), []);
});

test("one look makes room from everybody's trash where rows come late, as on the shared engine (D14)", async (t) => {
  const it = await rig(t, 30 * DAY_MS);
  const owners = ["a@example.com", "b@example.com", "c@example.com"];
  for (const owner of owners) {
    const user = await it.node.signIn(owner);
    await trashed(user, "1");
    await trashed(user, "2");
    await setQuota(it, owner, 100n);
  }
  it.clock.sleep(DAY_MS + 1);
  const reaper = restarted(t, it, withLateRows(it.node.node.storage));
  it.clock.sleep(TRASH_SETTLE_MS);
  await reaper.expire();
  await reaper.makeRoom();
  assert.deepEqual(left(it, ...owners), []);
});
