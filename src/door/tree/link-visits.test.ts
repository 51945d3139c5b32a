// Visitors whose links open nothing: a door asks for few of each network, and for other networks beside them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { LinkVisits, type LinkVisitsDeps, WRONG_VISITS_PER_MINUTE } from "./link-visits.ts";

test("a network whose links open nothing is asked about no more for a minute, and others are", async (t) => {
  let asked = 0;
  const clock = new ManualClock();
  const metaServer = {
    locateRoot: () => {
      asked++;
      return Promise.reject(new GroveError("NO_SUCH_PATH", "there is no such root"));
    },
  };
  const visits = new LinkVisits({ metaServer, profile: {}, clock } as unknown as LinkVisitsDeps);
  t.after(() => visits.close());
  const open = (address: string): Promise<unknown> => {
    const token = `gl_${"0".repeat(26)}_${"a".repeat(12)}_${"a".repeat(32)}`;
    return visits.open({ token, visitor: "0".repeat(32), pass: "" }, address);
  };
  for (let wrong = 0; wrong < WRONG_VISITS_PER_MINUTE; wrong++)
    await assert.rejects(open("198.51.100.7"), { code: "TOKEN_REJECTED" });
  await assert.rejects(open("198.51.100.7"), { code: "RATE_LIMITED" });
  assert.equal(asked, WRONG_VISITS_PER_MINUTE);
  await assert.rejects(open("203.0.113.7"), { code: "TOKEN_REJECTED" });
  clock.advance(60_000);
  await assert.rejects(open("198.51.100.7"), { code: "TOKEN_REJECTED" });
});
