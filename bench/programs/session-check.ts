// Times single checks in a full session table, inside the process as a FileServer makes them.
import { systemClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { makeVerifiedIdentity } from "#base/verified-identity.ts";
import { percentile } from "#bench/measure.ts";
import { serveTasks } from "#bench/tasks.ts";
import { SessionTable } from "#security/sessions/session-table.ts";

/** Coprime to all table sizes below it, so that checks walk through all sessions in no simple order. */
const STRIDE = 7_919;

const table = new SessionTable({ clock: systemClock, random: systemRandom });
const open: { token: string; address: string }[] = [];

serveTasks(
  {
    fill: (input) => {
      const { sessions, perUser } = input as { sessions: number; perUser: number };
      for (let at = 0; at < sessions; at += 1) {
        const username = `user-${Math.floor(at / perUser)}@example.com`;
        const address = `10.0.${(at >> 8) & 255}.${at & 255}`;
        const identity = makeVerifiedIdentity({ username, issuer: "bench", subject: username });
        const facts = { address, clientId: `client-${at}`, clientVersion: "1", deviceName: "bench" };
        open.push({ token: table.create(identity, facts).token, address });
      }
      return table.openCount;
    },
    // Microseconds that 99 of 100 checks stay within.
    checkP99: (input) => {
      const microseconds = new Float64Array(Number(input));
      for (let at = 0; at < microseconds.length; at += 1) {
        const { token, address } = open[(at * STRIDE) % open.length]!;
        const start = performance.now();
        table.check(token, address);
        microseconds[at] = (performance.now() - start) * 1_000;
      }
      return percentile([...microseconds], 0.99);
    },
  },
  () => undefined,
);
