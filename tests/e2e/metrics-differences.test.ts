// A node's differences as consoles merge them: after any sequence they know what the whole document says (D25).
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { documentText } from "#base/fake-nodes.fixture.ts";
import type { NodeReading } from "#console/cluster/cluster-state.ts";
import { ListedUsersLimit } from "#console/cluster/listed-users-limit.ts";
import { NodeDocument } from "#console/cluster/node-document.ts";
import type { NodeAnswer } from "#console/cluster/node-http.ts";
import type { NodeMetrics } from "#telemetry/metrics-document.ts";
import { metricsDifference, metricsJson } from "#telemetry/metrics-json.ts";
import { UserMaps, type UserReadings } from "#telemetry/user-maps.ts";

const METRICS = JSON.parse(documentText({})) as NodeMetrics;
const GUARDED = { damaged: [], securityEventsTotal: 0 };
const USERS = 300;

const change = fc.record({
  at: fc.nat(USERS - 1),
  liveBytes: fc.oneof(fc.nat(1_100), fc.constant(2n ** 60n + 1n)),
  quotaBytes: fc.constantFrom(1_000n, 17_179_869_184n, 2n ** 64n - 1n),
  lastActiveWallMs: fc.option(fc.nat(30_000), { nil: undefined }),
});
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("change" as const),
      changes: fc.array(change, { maxLength: 8 }),
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("poll" as const), console: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("lost" as const), console: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restart" as const) }) },
);

test("whatever changes, is lost or restarts, two consoles know by differences what the whole document says (D25)", () => {
  let differences = 0;
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const people = new Map<string, UserReadings>();
      const started = (): UserMaps => {
        const maps = new UserMaps((username) => people.get(username));
        maps.update(people.keys());
        return maps;
      };
      let maps = started();
      const consoles = [0, 1].map((at) => new NodeDocument(`n${at}`, new ListedUsersLimit()));
      for (const next of steps) {
        if (next.kind === "restart") maps = started();
        if (next.kind === "change") {
          for (const { at, ...readings } of next.changes) {
            const username = `u${at}@people.example`;
            people.set(username, { ...PERSON, ...readings, username });
            maps.update([username]);
          }
        }
        if (next.kind !== "poll" && next.kind !== "lost") continue;
        const document = consoles[next.console] ?? assert.fail();
        const path = document.ask();
        const answer = answerTo(path, maps);
        if (next.kind === "lost") continue;
        if (answer.body.includes("users_since")) differences++;
        const whole = new NodeDocument("fresh", new ListedUsersLimit());
        const [merged, wanted] = [document.read(answer), whole.read(answerTo("/metrics", maps))];
        assert.deepEqual(comparable(merged), comparable(wanted));
      }
    }),
    { numRuns: 200 },
  );
  assert.ok(differences > 100, `${differences} differences were merged`);
});

const PERSON: Omit<UserReadings, "username"> = {
  liveBytes: 0,
  trashBytes: 0,
  stagingBytes: 0,
  fileCount: 1,
  inodeCount: 2,
  inodeLimit: 10,
  inodeLimitExplicit: false,
  quotaBytes: 1_000n,
  quotaExplicit: true,
  lastActiveWallMs: undefined,
};

/** As a node's listener answers. */
function answerTo(path: string, maps: UserMaps): NodeAnswer {
  const version = new URL(path, "http://node").searchParams.get("since");
  const answer = maps.answerOf(version);
  const pieces =
    version === null || answer === undefined
      ? metricsJson(METRICS, maps, GUARDED)
      : metricsDifference(METRICS, maps, GUARDED, { version, answer });
  const body = Buffer.concat(pieces);
  return { body, etag: `"${maps.takeVersion()}"` };
}

function comparable({
  perUserStorage,
  perUserQuota,
  perUserDetail,
  nearQuota,
  ...rest
}: NodeReading): unknown {
  const lists = [perUserStorage, perUserQuota, perUserDetail].map((users) => [...users]);
  return { ...rest, lists, near: [nearQuota?.storage, nearQuota?.limit] };
}
