// Removed users at a node: 30 days of grace, the removal, the address's next user, and wrong clocks.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { DAY_MS } from "#base/duration.ts";
import { isGroveError } from "#base/errors.ts";
import { REMOVAL_GRACE_MS } from "#base/limits.ts";
import { silentLogger } from "#base/log.ts";
import type { UserState } from "#base/user-state.ts";
import { AddressChanges } from "#fileserver/control/address-changes.ts";
import { Changes } from "#fileserver/operations/changes.ts";
import { REMOVAL_SETTLE_MS, RemovedUserReaper } from "#fileserver/operations/removed-user-reaper.ts";
import { UserStateStore } from "#security/identity/user-state-store.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { withLateRows } from "./late-rows.fixture.ts";
import { refusal, startTestNode, type TestNode } from "./node.fixture.ts";

const HASH = createHash("sha256").update("correct horse").digest("hex");
const BY_PASSWORD = { metadata: { "x-admin-password-hash": HASH } };
const DAVE = "dave@example.com";
const FRIEND = "friend@example.com";

interface Rig {
  readonly node: TestNode;
  readonly clock: ManualClock;
  readonly set: (more: object) => Promise<unknown>;
}

/** Dave has files and trash; he and a friend share with each other. */
async function rig(t: TestContext, settledMs = REMOVAL_SETTLE_MS): Promise<Rig> {
  const clock = new ManualClock();
  const env = { SVC_ADMIN_EMAIL: "admin@example.com", ADMIN_PASSWORD_HASH: HASH };
  const node = await startTestNode({ clock, env });
  t.after(() => node.stop());
  clock.advance(settledMs);
  const dave = await node.signIn(DAVE);
  await dave.call.createDirectory({ path: "/docs" });
  await dave.call.createFile({ path: "/docs/a", data: Buffer.from("kept") });
  await dave.call.createFile({ path: "/old", data: Buffer.from("old") });
  await dave.call.trashFile({ path: "/old" });
  await dave.call.share({ path: "/docs", user: FRIEND });
  const friend = await node.signIn(FRIEND);
  await friend.call.createDirectory({ path: "/ours" });
  await friend.call.share({ path: "/ours", user: DAVE });
  const set = (more: object) =>
    node.anonymous.setUserState({ state: { username: DAVE, reason: "has left", ...more } }, BY_PASSWORD);
  return { node, clock, set };
}

const removal = ({ clock }: Rig) => ({ removeAtMs: BigInt(Math.trunc(clock.wallMs()) + REMOVAL_GRACE_MS) });
/** What another server tells of an address that was released there. */
const released = ({ clock }: Rig, dueAtMs: number): UserState => ({
  username: DAVE,
  disabled: false,
  closesShares: false,
  version: Math.trunc(clock.wallMs()),
  reason: "",
  setBy: "administrator",
  setAtMs: 1,
  tokensFromMs: 0,
  issuer: "",
  subject: "",
  removal: { dueAtMs, isReleased: true },
});
const usedBytes = ({ node }: Rig): number => {
  const usage = node.node.storage.root(DAVE)?.usage;
  return usage === undefined ? -1 : usage.liveBytes + usage.trashBytes;
};
const sharedWithDave = ({ node }: Rig): number =>
  node.node.storage.shares.ofRoot(FRIEND).filter(({ username }) => username === DAVE).length;
const sweep = ({ node }: Rig): Promise<void> => node.node.service.removals.sweep();
const reasonOf = async (call: Promise<unknown>): Promise<string> => (await refusal(call)).reason;

test("a removed user is refused in words, keeps all for 30 days, and comes back to it by undoing", async (t) => {
  const it = await rig(t);
  await it.set({ disabled: true, ...removal(it) });
  const refused = await refusal(it.node.signIn(DAVE));
  assert.equal(refused.reason, "USER_DISABLED");
  assert.match(refused.message, /this address is retired: its user was removed/);
  it.clock.sleep(29 * DAY_MS);
  await sweep(it);
  assert.deepEqual([usedBytes(it), sharedWithDave(it)], [7, 1]);
  assert.equal(await reasonOf(it.set({ disabled: false, removeAtMs: 1n })), "BAD_ARGUMENT");
  await it.set({ disabled: false });
  it.clock.sleep(2 * DAY_MS);
  await sweep(it);
  assert.equal(sharedWithDave(it), 1);
  const dave = await it.node.signIn(DAVE);
  assert.equal((await dave.call.readFile({ path: "/docs/a" })).data.toString(), "kept");
});

test("after 30 days files, trash and shares are gone, and a newcomer with the released address inherits nothing", async (t) => {
  const it = await rig(t);
  const due = removal(it);
  const handOvers = [{ to: FRIEND, reason: "reads on", untilMs: due.removeAtMs + BigInt(300 * DAY_MS) }];
  await it.set({ disabled: true, ...due, handOvers });
  const friend = await it.node.signIn(FRIEND);
  await friend.call.createDirectory({ path: "/later" });
  const share = await refusal(friend.call.share({ path: "/later", user: DAVE }));
  assert.match(share.message, /was removed by an administrator, and nothing is shared with that address/);
  const early = it.set({ disabled: false, ...due, released: true });
  assert.match((await refusal(early)).message, /the files are still there: undo the removal/);
  it.clock.sleep(REMOVAL_GRACE_MS + 1_000);
  await sweep(it);
  assert.deepEqual([usedBytes(it), sharedWithDave(it)], [0, 0]);
  assert.equal(await reasonOf(it.node.signIn(DAVE)), "USER_DISABLED");
  assert.match((await refusal(it.set({ disabled: false }))).message, /the files of this user are gone/);
  // A hand-over of the former root gives no access to the next user's, even while the decision lists it.
  await it.set({ disabled: false, ...due, released: true, handOvers });
  await sweep(it);
  const newcomer = await it.node.signIn(DAVE);
  assert.equal((await newcomer.call.listDir({ path: "/" })).entries.length, 0);
  assert.equal((await newcomer.call.showTrash({})).items.length, 0);
  await newcomer.call.createFile({ path: "/mine", data: Buffer.from("mine") });
  const again = await it.node.signIn(FRIEND);
  assert.equal(await reasonOf(again.call.readFile({ root: DAVE, path: "/mine" })), "NOT_SHARED");
  await again.call.share({ path: "/later", user: DAVE });
  await it.set({ disabled: false, tokensFromMs: 1n, ...due, released: true, handOvers });
  await sweep(it);
  assert.deepEqual([usedBytes(it), sharedWithDave(it)], [4, 1]);
});

test("a root that comes from a node which has not carried its owner's removal out is removed here", async (t) => {
  const it = await rig(t);
  const due = removal(it);
  await it.set({ disabled: true, ...due });
  it.clock.sleep(REMOVAL_GRACE_MS + 1_000);
  await sweep(it);
  const { removals } = it.node.node.service;
  await it.set({ disabled: false, ...due, released: true });
  await sweep(it);
  removals.requireClear(DAVE);
  removals.arrived(DAVE);
  assert.throws(() => removals.requireClear(DAVE), /are still being removed/);
  await sweep(it);
  removals.requireClear(DAVE);
});

test("a change of an address waits until what a removed user left there is gone, so that none of it goes to the new one", async (t) => {
  const it = await rig(t);
  const { service, storage } = it.node.node;
  const changes = new AddressChanges({
    storage,
    quotas: { rename: () => Promise.resolve() },
    operatorLooks: { rename: () => Promise.resolve() },
    subjects: { rename: () => Promise.resolve() },
    sessions: { endAll: () => 0 },
    usage: () => service.usage,
    removals: () => service.removals,
    audit: () => undefined,
    log: silentLogger,
  });
  const username = "dave.new@example.com";
  const apply = () => changes.apply({ username, former: DAVE, issuer: "i", subject: "s", version: 1n });
  // By a clock that is behind the removal is not yet due.
  const dueAtMs = Math.trunc(it.clock.wallMs()) + 60_000;
  await service.users.learn([released(it, dueAtMs)]);
  await assert.rejects(apply(), (error) => isGroveError(error, "STARTING"));
  assert.ok(storage.root(username) === undefined);
  it.clock.sleep(60_001);
  await apply();
  const { liveBytes, trashBytes } = storage.root(username)?.usage ?? assert.fail("no root");
  assert.deepEqual([liveBytes, trashBytes, storage.shares.ofRoot(FRIEND)], [0, 0, []]);
});

test("whom the whole root was shared with reaches nothing of a newcomer's, who is not told what administrators saw before", async (t) => {
  const it = await rig(t);
  const dave = await it.node.signIn(DAVE);
  await dave.call.share({ path: "/", user: FRIEND });
  await it.node.anonymous.showTrash({ root: DAVE, operator: { reason: "ticket 4711" } }, BY_PASSWORD);
  const due = removal(it);
  await it.set({ disabled: true, ...due });
  it.clock.sleep(REMOVAL_GRACE_MS + 1_000);
  await sweep(it);
  await it.set({ disabled: false, ...due, released: true });
  const newcomer = await it.node.signIn(DAVE);
  await newcomer.call.createFile({ path: "/mine", data: Buffer.from("mine") });
  const friend = await it.node.signIn(FRIEND);
  assert.equal(await reasonOf(friend.call.readFile({ root: DAVE, path: "/mine" })), "NOT_SHARED");
  assert.deepEqual((await newcomer.call.showTrash({})).operatorLooks, []);
});

test("what was handed over before stays over when the next user of the address is removed too, and comes back", async (t) => {
  const it = await rig(t);
  const due = removal(it);
  const handOvers = [{ to: FRIEND, reason: "reads on", untilMs: due.removeAtMs + BigInt(300 * DAY_MS) }];
  await it.set({ disabled: true, ...due, handOvers });
  it.clock.sleep(REMOVAL_GRACE_MS + 1_000);
  await sweep(it);
  const gone = { disabled: false, ...due, released: true, handOvers };
  await it.set(gone);
  await (await it.node.signIn(DAVE)).call.createFile({ path: "/mine", data: Buffer.from("mine") });
  const again = { disabled: true, ...removal(it), handOvers };
  assert.match((await refusal(it.set(again))).message, /was another user's before is not forgotten/);
  await it.set({ ...again, removedBeforeMs: due.removeAtMs });
  const friend = await it.node.signIn(FRIEND);
  const read = () => friend.call.readFile({ root: DAVE, path: "/mine" });
  assert.equal(await reasonOf(read()), "NOT_SHARED");
  assert.match((await refusal(it.set({ disabled: false }))).message, /is not forgotten/);
  await it.set(gone);
  assert.equal(await reasonOf(read()), "NOT_SHARED");
  await sweep(it);
  const back = await it.node.signIn(DAVE);
  assert.equal((await back.call.readFile({ path: "/mine" })).data.toString(), "mine");
});

test("a newcomer who is locked out keeps what they share open, as everybody does", async (t) => {
  const it = await rig(t);
  const due = removal(it);
  await it.set({ disabled: true, ...due });
  it.clock.sleep(REMOVAL_GRACE_MS + 1_000);
  await sweep(it);
  await it.set({ disabled: false, ...due, released: true });
  const newcomer = await it.node.signIn(DAVE);
  await newcomer.call.createFile({ path: "/mine", data: Buffer.from("mine") });
  await newcomer.call.share({ path: "/mine", user: FRIEND });
  await it.set({ disabled: true, ...due, released: true });
  const friend = await it.node.signIn(FRIEND);
  assert.equal((await friend.call.readFile({ root: DAVE, path: "/mine" })).data.toString(), "mine");
});

test("a node whose clock is behind lets a newcomer in when the removal is due by it, so that nothing new looks old", async (t) => {
  const it = await rig(t);
  const dueAtMs = Math.trunc(it.clock.wallMs()) + 60_000;
  await it.node.node.service.users.learn([released(it, dueAtMs)]);
  await sweep(it);
  assert.equal(await reasonOf(it.node.signIn(DAVE)), "STARTING");
  it.clock.sleep(61_000);
  await it.node.signIn(DAVE);
});

test("a node that may have missed an undoing deletes nothing, and one removal that fails keeps no other waiting", async (t) => {
  const it = await rig(t);
  const { storage, service } = it.node.node;
  const userStates = await UserStateStore.open(join(scratchFolder("grove-removal-"), "book.json"));
  const due = { dueAtMs: Math.trunc(it.clock.wallMs()) + 1_000, isReleased: false };
  const state = { ...released(it, 0), disabled: true, reason: "has left", removal: due };
  const others = ["broken@example.com", "broken-too@example.com"];
  await userStates.merge([state, ...others.map((username) => ({ ...state, username }))]);
  let knows = false;
  const reaper = new RemovedUserReaper({
    storage,
    userStates,
    quotas: { set: (user) => (user === DAVE ? Promise.resolve() : Promise.reject(new Error("full"))) },
    looks: { forget: () => Promise.resolve() },
    changes: new Changes({ ledger: service.ledger, usage: service.usage, audit: () => {} }),
    knowsCluster: () => knows,
    clock: it.clock,
    audit: () => {},
    log: silentLogger,
  });
  t.after(() => reaper.stop());
  it.clock.sleep(2_000);
  it.clock.advance(REMOVAL_SETTLE_MS);
  await reaper.sweep();
  assert.equal(usedBytes(it), 7);
  knows = true;
  const reads = t.mock.method(storage.shares, "all");
  await reaper.sweep();
  assert.deepEqual([usedBytes(it), sharedWithDave(it)], [0, 0]);
  // Once for all, and once for the one who is shared something.
  assert.equal(reads.mock.callCount(), 2);
});

test("one sweep removes all where rows come late, as on the shared engine", async (t) => {
  const it = await rig(t);
  const { storage, service } = it.node.node;
  const dave = await it.node.signIn(DAVE);
  for (const path of ["/a", "/b"]) {
    await dave.call.createFile({ path, data: Buffer.from(path) });
    await dave.call.createFile({ path: `${path}2`, data: Buffer.from(path) });
    await dave.call.trashFile({ path: `${path}2` });
  }
  const userStates = await UserStateStore.open(join(scratchFolder("grove-removal-"), "book.json"));
  const due = { dueAtMs: Math.trunc(it.clock.wallMs()) + 1_000, isReleased: false };
  await userStates.merge([{ ...released(it, 0), disabled: true, reason: "has left", removal: due }]);
  const failures: string[] = [];
  const reaper = new RemovedUserReaper({
    storage: withLateRows(storage),
    userStates,
    quotas: { set: () => Promise.resolve() },
    looks: { forget: () => Promise.resolve() },
    changes: new Changes({ ledger: service.ledger, usage: service.usage, audit: () => {} }),
    clock: it.clock,
    audit: () => {},
    log: { ...silentLogger, error: (event, fields) => failures.push(`${event} ${JSON.stringify(fields)}`) },
  });
  t.after(() => reaper.stop());
  it.clock.sleep(2_000);
  it.clock.advance(REMOVAL_SETTLE_MS);
  await reaper.sweep();
  assert.deepEqual(failures, []);
  assert.deepEqual([usedBytes(it), sharedWithDave(it)], [0, 0]);
});

test("a node that learns of a removal late takes away what was there before, quota and properties too, and nothing that came after", async (t) => {
  const it = await rig(t);
  const quota = async (quotaBytes: bigint, inodeLimit: bigint): Promise<void> => {
    const reply = await it.node.anonymous.setQuota({ username: DAVE, quotaBytes, inodeLimit }, BY_PASSWORD);
    assert.equal(reply.success, true);
  };
  await quota(60n, 5n);
  const property = { namespace: "u:", name: "x", xml: '<x xmlns="u:">of before</x>' };
  const dave = await it.node.signIn(DAVE);
  await dave.call.changeProperties({ path: "/", changes: [{ property }] });
  it.clock.sleep(2 * REMOVAL_GRACE_MS);
  const dueAtMs = Math.trunc(it.clock.wallMs()) - DAY_MS;
  await it.node.node.service.users.learn([released(it, dueAtMs)]);
  await sweep(it);
  assert.deepEqual([usedBytes(it), sharedWithDave(it)], [0, 0]);
  const newcomer = await it.node.signIn(DAVE);
  const { source, inodeLimitSource } = await newcomer.call.getQuota({});
  assert.deepEqual([source, inodeLimitSource], ["default", "default"]);
  assert.deepEqual((await newcomer.call.getProperties({ path: "/" })).properties, []);
  // What is set for the newcomer stays when the removal is carried out again, as after each start.
  await newcomer.call.createFile({ path: "/mine" });
  await quota(9n, 6n);
  it.node.node.service.removals.arrived(DAVE);
  await sweep(it);
  const theirs = await newcomer.call.getQuota({});
  assert.deepEqual([theirs.quotaBytes, theirs.inodeLimit, theirs.inodes], [9n, 6n, 1n]);
});

test("a wall clock that jumps ahead deletes nothing for a day", async (t) => {
  const it = await rig(t);
  await it.set({ disabled: true, ...removal(it) });
  it.clock.jumpWall(2 * REMOVAL_GRACE_MS);
  await sweep(it);
  assert.equal(usedBytes(it), 7);
  it.clock.standStill(DAY_MS + 1);
  await sweep(it);
  assert.equal(usedBytes(it), 0);
});

test("a node that has just started deletes nothing, since its clock may not have been set yet", async (t) => {
  const it = await rig(t, 0);
  await it.set({ disabled: true, ...removal(it) });
  it.clock.sleep(REMOVAL_GRACE_MS + 1_000);
  await sweep(it);
  assert.equal(usedBytes(it), 7);
  it.clock.standStill(REMOVAL_SETTLE_MS);
  await sweep(it);
  assert.equal(usedBytes(it), 0);
});
