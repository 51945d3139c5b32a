// Tests a restored node's log that goes back to an earlier line: a report of the losses, and no break (D24).
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { PollError } from "#console/cluster/poll-error.ts";
import { AUDIT_SUSPECT_MS } from "#console/services/restored-node.ts";
import { verifyCopies } from "#security/audit/verify-copies.ts";
import { until } from "#testing/until.ts";
import {
  FakeLog,
  type GatheringUnderTest,
  startAfterKill,
  startGathering,
  TAKEN_MS,
} from "./audit-gathering.fixture.ts";

const ends: (() => Promise<unknown>)[] = [];
after(async () => {
  for (const end of ends.toReversed()) await end();
});

test("a restored node is not accused: its log says from which backup, and what it went on from is what was gathered (D24)", async () => {
  const { round, list, logs, raised, restored, copies, dataFolder, gathering } = await startGathering(
    ends,
    "fs-a",
  );
  const log = logs.get("fs-a") ?? assert.fail();
  for (let i = 0; i < 4; i++) log.add("file.delete", `bob@example.com:/${i}`);
  const back = log.restored({ backup: "000012-20261122T202800Z" });
  log.add("quota.set", "carol@example.com");
  for (let i = 0; i < 3; i++) log.add("trash.purge", "dave@example.com:/x");
  for (let i = 0; i < 3; i++) await round();
  logs.set("fs-a", back);
  for (let i = 0; i < 3; i++) await round();
  await until(() => restored.length > 0);
  await copies.flush();
  assert.deepEqual(raised, []);
  const [found, ...more] = restored;
  assert.deepEqual(more, []);
  assert.deepEqual(
    [found?.line.backup, found?.line.takenAtMs, found?.line.upTo, found?.lost.count],
    ["000012-20261122T202800Z", TAKEN_MS, 4, 4],
  );
  assert.deepEqual([...(found?.lost.changed ?? [])], ["dave@example.com"]);
  assert.deepEqual([...(found?.lost.quotas ?? [])], ["carol@example.com"]);
  const [verdict] = (await verifyCopies(dataFolder)).filter(({ source }) => source === "fs-a");
  assert.deepEqual(verdict?.broken, []);
  assert.match(
    verdict?.notes[0] ?? "",
    /^restored from backup 000012-.* up to line 4 \(the log ends with line 5/,
  );
  const { entries } = await list("?act=audit.restored");
  assert.deepEqual(
    entries.map(({ subject }) => subject),
    ["fs-a"],
  );
  // It continues normally; its new lines up to the old number are no break.
  for (let i = 0; i < 9; i++) back.add("file.delete", "/again");
  for (let i = 0; i < 4; i++) await round();
  assert.deepEqual([raised.length, restored.length], [0, 1]);
  assert.equal(gathering.chains().find(({ node }) => node === "fs-a")?.breaks, 0);
});

test("a restore that says so and does not go on from what was gathered is accused like any change (D24)", async () => {
  const { round, logs, raised, restored, dataFolder } = await startGathering(ends, "fs-a");
  const log = logs.get("fs-a") ?? assert.fail();
  for (let i = 0; i < 6; i++) log.add("file.delete", `/${i}`);
  for (let i = 0; i < 2; i++) await round();
  const forged = new FakeLog();
  for (let i = 0; i < 4; i++) forged.add("file.delete", `/${i === 1 ? "harmless" : i}`);
  logs.set("fs-a", forged.restored({ backup: "000012-20261122T202800Z" }));
  for (let i = 0; i < 3; i++) await round();
  await until(() => raised.length > 0);
  assert.deepEqual([restored.length, raised.map(({ key }) => key)], [0, ["audit_broken:fs-a"]]);
  const [verdict] = (await verifyCopies(dataFolder)).filter(({ source }) => source === "fs-a");
  assert.equal(verdict?.broken.length, 1);
  const again = forged.restored({ backup: "000013-20261122T202900Z", upTo: 2 });
  again.lines = again.lines.slice(0, 5);
  logs.set("fs-a", again);
  for (let i = 0; i < 3; i++) await round();
  await until(() => raised.length > 1);
  assert.deepEqual([restored.length, raised.length], [0, 2], "its line must stand where it says");
});

test("a backup of just now, restored, is told too; one that an older console has seen is not told to a new one", async () => {
  const { round, logs, raised, restored } = await startGathering(ends, "fs-a", "fs-b");
  const [a, b] = [logs.get("fs-a") ?? assert.fail(), logs.get("fs-b") ?? assert.fail()];
  a.add("file.delete", "/1");
  b.add("file.delete", "/1");
  logs.set("fs-b", b.restored({ backup: "000001-20260101T000000Z" }));
  await round();
  logs.set("fs-a", a.restored({ backup: "000012-20261122T202800Z" }));
  await round();
  await until(() => restored.length > 0);
  assert.deepEqual(raised, []);
  assert.deepEqual(
    restored.map(({ node, lost }) => [node.id, lost.count]),
    [["fs-a", 0]],
  );
});

/** A log that goes back and needs several polls to be read. */
async function goneBack(isRestore: boolean): Promise<{ before: GatheringUnderTest; log: FakeLog }> {
  const before = await startGathering(ends, "fs-a");
  const log = before.logs.get("fs-a") ?? assert.fail();
  for (let i = 0; i < 8; i++) log.add("file.delete", `bob@example.com:/${i}`);
  const back = isRestore ? log.restored({ backup: "000012-20261122T202800Z" }) : new FakeLog();
  for (let i = 0; i < 4; i++) log.add("trash.purge", "dave@example.com:/x");
  for (let i = 0; i < 3; i++) await before.round();
  for (let i = 0; i < 60; i++) back.add("file.delete", `bob@example.com:/later-${i}`);
  before.logs.set("fs-a", back);
  await before.round();
  assert.equal(before.copies.states().get("fs-a")?.generation, 2, "it has gone back");
  assert.deepEqual([before.raised, before.restored], [[], []], "nobody has judged it yet");
  return { before, log: back };
}

test("a console that is killed before it has judged a log that went back leaves that to the next: it accuses, once", async () => {
  const { before, log } = await goneBack(false);
  const next = await startAfterKill(before, ends, "fs-a");
  assert.equal(next.gathering.chains().find(({ node }) => node === "fs-a")?.breaks, 0, "nor is it yet");
  next.logs.set("fs-a", log);
  for (let i = 0; i < 6; i++) await next.round();
  await until(() => next.raised.length > 0);
  assert.deepEqual(
    next.raised.map(({ key, detail }) => [key, detail?.["reason"]]),
    [["audit_broken:fs-a", "line 12 is not the one that was gathered"]],
  );
  await next.copies.flush();
  const [verdict] = (await verifyCopies(next.dataFolder)).filter(({ source }) => source === "fs-a");
  assert.deepEqual(verdict?.broken, ["line 12 is not the one that was gathered"]);
  const third = await startAfterKill(next, ends, "fs-a");
  third.logs.set("fs-a", log);
  for (let i = 0; i < 2; i++) await third.round();
  assert.deepEqual([third.raised, third.restored], [[], []]);
  assert.equal(third.gathering.chains().find(({ node }) => node === "fs-a")?.breaks, 1);
});

test("the same where a restore is the reason, which the console before has gathered: it is told, and nobody is accused", async () => {
  const { before, log } = await goneBack(true);
  const next = await startAfterKill(before, ends, "fs-a");
  next.logs.set("fs-a", log);
  for (let i = 0; i < 6; i++) await next.round();
  await until(() => next.restored.length > 0);
  assert.deepEqual(next.raised, []);
  const [found] = next.restored;
  assert.deepEqual([found?.node.name, found?.line.upTo, found?.lost.count], ["fs-a", 8, 4]);
  await next.copies.flush();
  const [verdict] = (await verifyCopies(next.dataFolder)).filter(({ source }) => source === "fs-a");
  assert.deepEqual(verdict?.broken, []);
});

test("one that lies in wait is accused too when its node answers no more", async () => {
  const { before } = await goneBack(false);
  const next = await startAfterKill(before, ends, "fs-a");
  next.lies.set("fs-a", new PollError("it is away"));
  await next.round();
  assert.deepEqual(next.raised, []);
  next.clock.advance(AUDIT_SUSPECT_MS);
  await next.round();
  await until(() => next.raised.length > 0);
});
