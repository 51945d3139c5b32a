// How long a session check takes inside the process with a full table: the 99th percentile in microseconds.
import { systemClock } from "#base/clock.ts";
import { SESSIONS_GLOBAL } from "#base/limits.ts";
import { systemRandom } from "#base/random.ts";
import { makeVerifiedIdentity } from "#base/verified-identity.ts";
import { SessionTable } from "#sessions/session-table.ts";

const CHECKS = 200_000;
const WARM_UP_CHECKS = 50_000;
const USERS = 2_500;

/** Fills a table with 10,000 live sessions, checks them in random order, and returns the percentiles of one check in microseconds. */
export function measureSessionCheck(): { p50Us: number; p99Us: number; sweepMs: number } {
  const table = new SessionTable({ clock: systemClock, random: systemRandom });
  const presented: { token: string; address: string }[] = [];
  for (let at = 0; at < SESSIONS_GLOBAL; at++) {
    const identity = makeVerifiedIdentity({
      username: `user${at % USERS}@example.com`,
      issuer: "",
      subject: "",
    });
    const address = `10.${at % 250}.${Math.floor(at / 250) % 250}.7`;
    const { token } = table.create(identity, {
      address,
      clientId: "bench",
      clientVersion: "0",
      deviceName: "bench",
    });
    presented.push({ token, address });
  }
  const took = new Float64Array(CHECKS);
  for (let at = -WARM_UP_CHECKS; at < CHECKS; at++) {
    const one = presented[Math.floor(Math.random() * presented.length)];
    if (one === undefined) continue;
    const startNs = process.hrtime.bigint();
    table.check(one.token, one.address);
    const endNs = process.hrtime.bigint();
    if (at >= 0) took[at] = Number(endNs - startNs) / 1000;
  }
  took.sort();
  const startMs = performance.now();
  table.sweep();
  const sweepMs = performance.now() - startMs;
  return { p50Us: took[CHECKS / 2] ?? 0, p99Us: took[Math.floor(CHECKS * 0.99)] ?? 0, sweepMs };
}

if (import.meta.main) {
  const { p50Us, p99Us, sweepMs } = measureSessionCheck();
  console.log(
    `session check, ${SESSIONS_GLOBAL} live: p50 ${p50Us.toFixed(1)} µs, p99 ${p99Us.toFixed(1)} µs; sweep ${sweepMs.toFixed(2)} ms`,
  );
}
