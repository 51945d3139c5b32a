// Tests of the lines about a certificate's end: none in time for a renewal, one a day after that (B-11).
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { DAY_MS } from "#base/duration.ts";
import { silentLogger } from "#base/log.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { createAuthority } from "./authority.ts";
import { EndWarning } from "./end-warning.ts";

test("a line a day comes in the last 14 days, and of a life under 56 days in its last quarter", async () => {
  const clock = new ManualClock(Date.now());
  for (const [lifeDays, fromDays] of [
    [90, 14],
    [56, 14],
    [40, 10],
    [4, 1],
  ] as const) {
    const lifetimeMs = lifeDays * DAY_MS;
    const authority = await createAuthority(join(scratchFolder("end-warning-"), "ca"), { clock, lifetimeMs });
    const { certificatePem } = await authority.issueNodeCertificate({ id: "n" });
    const told: unknown[] = [];
    const keep = (_event: string, facts?: Record<string, unknown>): number => told.push(facts?.["days_left"]);
    const warning = new EndWarning({ ...silentLogger, warn: keep, error: keep });
    const endMs = clock.wallMs() + lifetimeMs;
    const hourMs = DAY_MS / 24;
    warning.look(certificatePem, endMs - fromDays * DAY_MS - hourMs);
    assert.deepEqual(told, [], `${lifeDays} days`);
    for (let look = 0; look < 2; look++) warning.look(certificatePem, endMs - fromDays * DAY_MS + hourMs);
    warning.look(certificatePem, endMs + hourMs);
    assert.deepEqual(told, [fromDays - 1, -1], `${lifeDays} days`);
  }
});
