// The list of security events: its form, its bound, and the merging of a flood from one place.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { SecurityEvents } from "./security-events.ts";

test("an event has the form that the console reads (D22)", () => {
  const events = new SecurityEvents({ clock: new ManualClock(1_790_000_000_999), random: systemRandom });
  events.record({ type: "ip_mismatch", username: "a@x", ipBound: "10.0.0.1", ipSeen: "10.0.0.2", count: 3 });
  events.record({ type: "mock_token", fatal: true });
  const [first, second] = events.list();
  assert.match(first?.id ?? "", /^[0-9A-Z]{26}$/);
  assert.deepEqual(
    { ...first, id: "" },
    {
      id: "",
      ts: 1_790_000_000,
      type: "ip_mismatch",
      fatal: false,
      username: "a@x",
      ip_bound: "10.0.0.1",
      ip_seen: "10.0.0.2",
      count: 3,
    },
  );
  assert.deepEqual(
    { ...second, id: "" },
    {
      id: "",
      ts: 1_790_000_000,
      type: "mock_token",
      fatal: true,
      username: null,
      ip_bound: null,
      ip_seen: null,
      count: 1,
    },
  );
});

test("the last 100 are kept (D22)", () => {
  const events = new SecurityEvents({ clock: new ManualClock(), random: systemRandom });
  for (let at = 0; at < 100; at++) events.record({ type: "unknown_cert", ipSeen: `10.0.0.${at}` });
  assert.equal(events.list().length, 100);
  events.record({ type: "unknown_cert", ipSeen: "10.0.1.0" });
  assert.deepEqual(
    [events.list().length, events.list()[0]?.ip_seen, events.list()[99]?.ip_seen],
    [100, "10.0.0.1", "10.0.1.0"],
  );
});

test("the same attempt within 10 minutes counts up one event, after that it is a new one", () => {
  const clock = new ManualClock();
  const events = new SecurityEvents({ clock, random: systemRandom });
  const first = events.record({ type: "mock_token", fatal: true, ipSeen: "10.0.0.1" });
  events.record({ type: "mock_token", fatal: true, ipSeen: "10.0.0.2" });
  clock.advance(599_999);
  const again = events.record({ type: "mock_token", fatal: true, ipSeen: "10.0.0.1", count: 4 });
  assert.deepEqual([again.id, again.count], [first.id, 5]);
  clock.advance(1);
  assert.equal(events.record({ type: "mock_token", fatal: true, ipSeen: "10.0.0.1" }).count, 1);
  assert.deepEqual(
    events.list().map(({ count }) => count),
    [5, 1, 1],
  );
});

test("knocking from every address of one /64 is one event, so that it cannot push the others out", () => {
  const events = new SecurityEvents({ clock: new ManualClock(), random: systemRandom });
  for (let at = 1; at <= 500; at++)
    events.record({ type: "mock_token", ipSeen: `2001:db8:0:1::${at.toString(16)}` });
  events.record({ type: "mock_token", ipSeen: "2001:db8:0:2::1" });
  assert.deepEqual(
    events.list().map(({ ip_seen, count }) => [ip_seen, count]),
    [
      ["2001:db8:0:1::1", 500],
      ["2001:db8:0:2::1", 1],
    ],
  );
});

test("the total grows with whatever changes the list, a flood that counts up one event included (D22)", () => {
  const events = new SecurityEvents({ clock: new ManualClock(), random: systemRandom });
  assert.equal(events.total, 0);
  for (let count = 1; count <= 3; count++) {
    events.record({ type: "mock_token" });
    assert.equal(events.total, count);
  }
  assert.equal(events.list().length, 1);
});
