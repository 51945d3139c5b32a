// The sessions of sign-ins and of doors together, as metrics count their users.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { makeVerifiedIdentity } from "#base/verified-identity.ts";
import { SessionTable } from "#security/sessions/session-table.ts";
import { allSessions } from "./all-sessions.ts";

test("a user at the command line and at a door is one active user (D12)", () => {
  const deps = { clock: new ManualClock(), random: systemRandom };
  const [signIns, doors] = [new SessionTable(deps), new SessionTable(deps)];
  const facts = { address: "192.0.2.1", clientId: "", clientVersion: "", deviceName: "" };
  const come = (table: SessionTable, name: string) =>
    table.create(makeVerifiedIdentity({ username: `${name}@example.com`, issuer: "", subject: "" }), facts);
  for (const [table, name] of [
    [signIns, "both"],
    [doors, "both"],
    [signIns, "shell"],
    [doors, "browser"],
  ] as const)
    come(table, name);
  assert.equal(allSessions(signIns, doors).activeUsers(60_000), 3);
});
