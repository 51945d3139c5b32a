// Attempts at a MetaServer reach the store in few writes, and a store that is away loses none (spec 5.7).
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { ManualClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { SECURITY_EVENTS_KEPT } from "#base/limits.ts";
import { silentLogger } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import type { SecurityReport } from "#metaserver/directory/directory.ts";
import { SECURITY_REPORT_MAX_BYTES } from "#metaserver/directory/security-commands.ts";
import { SECURITY_TELL_INTERVAL_MS, SecurityReporter } from "./security-reporter.ts";

interface Told {
  readonly events: { type: string; fatal: boolean; ip_seen: string; count: number }[];
}

function tellerUnderTest() {
  const clock = new ManualClock();
  const written: SecurityReport[] = [];
  const store = { isAway: false };
  const directory = {
    putSecurityReport: async (report: SecurityReport) => {
      if (store.isAway) throw new GroveError("STORE_UNAVAILABLE", "away");
      written.push(report);
    },
  };
  const lines: string[] = [];
  const log = { ...silentLogger, error: (event: string) => lines.push(event) };
  const teller = new SecurityReporter({
    directory,
    source: () => "m1:50050",
    clock,
    random: systemRandom,
    log,
  });
  const wait = async (): Promise<void> => {
    clock.advance(SECURITY_TELL_INTERVAL_MS);
    await turn();
  };
  const last = (): Told => JSON.parse(written.at(-1)?.document ?? "{}") as Told;
  return { teller, written, store, lines, wait, last };
}

const attempt = (ipSeen: string) => ({ type: "mock_token", fatal: true, ipSeen }) as const;

test("a flood is one event of each place, written once in two seconds, with a line when it begins and at every tenfold", async () => {
  const { teller, written, lines, wait, last } = tellerUnderTest();
  for (let at = 0; at < 1_000; at++) teller.sink(attempt("203.0.113.7"));
  assert.equal(written.length, 0);
  await wait();
  assert.equal(written.length, 1);
  assert.equal(written[0]?.source, "m1:50050");
  assert.deepEqual(
    last().events.map(({ type, fatal, ip_seen, count }) => [type, fatal, ip_seen, count]),
    [["mock_token", true, "203.0.113.7", 1_000]],
  );
  assert.equal(lines.length, 4);
  await wait();
  assert.equal(written.length, 1, "nothing is new");
  for (let at = 0; at < 3 * SECURITY_EVENTS_KEPT; at++)
    teller.sink(attempt(`2001:db8:${at.toString(16)}::1`));
  await wait();
  assert.equal(written.length, 2);
  assert.equal(last().events.length, SECURITY_EVENTS_KEPT);
  assert.ok(Buffer.byteLength(written[1]?.document ?? "") <= SECURITY_REPORT_MAX_BYTES);
});

test("what a store that is away did not take goes with the next event; what waits is written at the end", async () => {
  const { teller, written, store, wait, last } = tellerUnderTest();
  store.isAway = true;
  teller.sink(attempt("203.0.113.7"));
  await wait();
  store.isAway = false;
  teller.sink(attempt("198.51.100.1"));
  await teller.close();
  assert.deepEqual(
    last().events.map(({ ip_seen }) => ip_seen),
    ["203.0.113.7", "198.51.100.1"],
  );
  await teller.close();
  assert.equal(written.length, 1);
});
