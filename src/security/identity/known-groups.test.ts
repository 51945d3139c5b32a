// Tests a node's copy of the groups: how long it counts, over restarts too, and what it says of changes.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import type { GroupRole, GroupRoles } from "#security/policy/group.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { GROUP_ROLES_HOLD_MS, KnownGroups } from "./known-groups.ts";

const grant = (username: string, role: GroupRole, untilMs = 0) => ({
  username,
  role,
  setBy: "root@x.de",
  setAtMs: 5,
  untilMs,
});
const atlas = (...roles: GroupRoles["roles"]): GroupRoles => ({ name: "atlas", roles });

function opened(clock: ManualClock, path: string, gone: readonly string[] = []): Promise<KnownGroups> {
  const isGoneSince = (username: string): boolean => gone.includes(username);
  return KnownGroups.open({ path, clock, log: silentLogger, isGoneSince });
}

const newPath = (): string => join(scratchFolder("groups-"), "groups.json");

test("a node that has heard nothing knows no role, and one that heard knows each in its group alone", async () => {
  const groups = await opened(new ManualClock(), newPath());
  assert.equal(groups.roleOf("dave@x.de", "atlas"), undefined);
  groups.take("m", [atlas(grant("dave@x.de", "write")), { name: "b", roles: [grant("eve@x.de", "read")] }]);
  assert.equal(groups.roleOf("dave@x.de", "atlas"), "write");
  assert.equal(groups.roleOf("dave@x.de", "b"), undefined);
  assert.equal(groups.roleOf("eve@x.de", "atlas"), undefined);
  await groups.kept();
});

test("roles count for an hour after the last confirmation, and again with the next", async () => {
  const clock = new ManualClock();
  const groups = await opened(clock, newPath());
  groups.take("m", [atlas(grant("dave@x.de", "write"))]);
  clock.advance(GROUP_ROLES_HOLD_MS);
  assert.equal(groups.roleOf("dave@x.de", "atlas"), "write");
  clock.advance(1);
  assert.equal(groups.roleOf("dave@x.de", "atlas"), undefined);
  assert.equal(groups.confirm("other"), false);
  assert.equal(groups.roleOf("dave@x.de", "atlas"), undefined);
  assert.equal(groups.confirm("m"), true);
  assert.equal(groups.roleOf("dave@x.de", "atlas"), "write");
  await groups.kept();
});

test("a restart keeps the roles for what is left of the hour, and a clock that was set back for nothing", async () => {
  const clock = new ManualClock(1_790_000_000_000);
  const path = newPath();
  const groups = await opened(clock, path);
  groups.take("m", [atlas(grant("dave@x.de", "manage"))]);
  await groups.kept();
  clock.advance(GROUP_ROLES_HOLD_MS - 1);
  assert.equal((await opened(clock, path)).roleOf("dave@x.de", "atlas"), "manage");
  clock.advance(2);
  assert.equal((await opened(clock, path)).roleOf("dave@x.de", "atlas"), undefined);
  assert.equal(
    (await opened(new ManualClock(1_790_000_000_000 - 120_000), path)).roleOf("dave@x.de", "atlas"),
    undefined,
  );
  await writeFile(path, "{");
  assert.equal((await opened(clock, path)).roleOf("dave@x.de", "atlas"), undefined);
});

test("a role ends at its moment, and with the removal of its user", async () => {
  const clock = new ManualClock(1_000_000);
  const groups = await opened(clock, newPath(), ["gone@x.de"]);
  groups.take("m", [
    atlas(grant("dave@x.de", "read"), grant("dave@x.de", "write", 1_000_100), grant("gone@x.de", "read")),
  ]);
  assert.equal(groups.roleOf("dave@x.de", "atlas"), "write");
  assert.equal(groups.roleOf("gone@x.de", "atlas"), undefined);
  clock.advance(100);
  assert.equal(groups.roleOf("dave@x.de", "atlas"), "read");
  await groups.kept();
});

test("what changed is told, except of the first answer that a node ever hears", async () => {
  const clock = new ManualClock();
  const path = newPath();
  const groups = await opened(clock, path);
  assert.deepEqual(groups.take("a", [atlas(grant("dave@x.de", "read"))]), []);
  await groups.kept();
  // A restarted one compares with what it kept.
  const again = await opened(clock, path);
  const changes = again.take("b", [atlas(grant("dave@x.de", "write"), grant("eve@x.de", "read"))]);
  assert.deepEqual(
    changes.map(({ username, before, now }) => [username, before?.role, now?.role]),
    [
      ["dave@x.de", "read", "write"],
      ["eve@x.de", undefined, "read"],
    ],
  );
  assert.deepEqual(
    again.take("c", []).map(({ username, now }) => [username, now]),
    [
      ["dave@x.de", undefined],
      ["eve@x.de", undefined],
    ],
  );
  await again.kept();
});
