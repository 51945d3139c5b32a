// Sessions of visitors: how many one network takes of those that all visitors share.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { linkIdentity } from "#security/identity/link-identity.ts";
import { LINK_SESSIONS_PER_LINK, LINK_SESSIONS_PER_NETWORK, LinkSessions } from "./link-sessions.ts";

test("visitors of one network end their own oldest sessions, and no one else's", (t) => {
  const clock = new ManualClock();
  const sessions = new LinkSessions({ gate: { goesOn: () => true }, clock, random: systemRandom });
  t.after(() => sessions.stop());
  const come = (id: string, address: string) => {
    clock.advance(1);
    const link = { id, kind: "read", owner: "a@example.com", inodeId: "1", visitor: "v" } as const;
    return sessions.create(linkIdentity(link), { id: "door", key: "key", address }).session;
  };
  const other = come("a", "198.51.100.7");
  const [first, ...rest] = Array.from({ length: LINK_SESSIONS_PER_NETWORK }, (_, at) =>
    come(at % 2 === 0 ? "a" : "b", `2001:db8::${at.toString(16)}`),
  );
  assert.ok(first !== undefined && sessions.table.isLive(first));
  for (let more = 0; more < LINK_SESSIONS_PER_LINK; more++) come("a", "2001:db8::1");
  assert.ok(sessions.table.isLive(other), "another network's session goes on");
  assert.ok(![first, ...rest].some((session) => sessions.table.isLive(session)));
  assert.equal(sessions.table.openCount, LINK_SESSIONS_PER_NETWORK + 1);
  clock.advance(sessions.table.limits.idleTimeoutMs + 1);
  sessions.look();
  assert.equal(sessions.table.openCount, 0, "expired sessions are forgotten");
});
