// What a refusal says to people: the door's words, and no page of a server before it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { door, refusalOf } from "./api.ts";
import { doorNowMs } from "./door-clock.ts";

test("the door's own words are said", () => {
  const { code, message, status } = refusalOf(
    507,
    '{"error":"QUOTA_EXCEEDED","message":"storage quota exceeded"}',
  );
  assert.deepEqual([code, message, status], ["QUOTA_EXCEEDED", "storage quota exceeded", 507]);
  assert.equal(refusalOf(503, "the door is full\n").message, "the door is full");
  assert.equal(refusalOf(0, "").code, "NETWORK");
});

test("a foreign answer is said by a sentence of our own", () => {
  const page = "<html><head><title>502 Bad Gateway</title></head></html>";
  for (const text of [
    page,
    `\n${page}`,
    '{"message":"no upstream"}',
    '{"error":1,"message":2}',
    "[]{}",
    "",
  ]) {
    const { code, message } = refusalOf(502, text);
    assert.deepEqual([code, message], ["REFUSED", "The door, or a server before it, answered 502."], text);
  }
  assert.equal(refusalOf(413, "x".repeat(501)).message, "The door, or a server before it, answered 413.");
});

test("a server before the door that waits in vain for it passes like one that finds none", () => {
  for (const status of [0, 429, 502, 503, 504]) assert.equal(refusalOf(status, "").isPassing, true);
  for (const status of [400, 404, 409, 423, 500, 507]) assert.equal(refusalOf(status, "").isPassing, false);
});

test("the time of day is the door's, where the viewer's clock is another", async (t) => {
  const hourMs = 3_600_000;
  for (const aheadMs of [-26 * hourMs, 49 * hourMs, 0]) {
    const date = new Date(Date.now() + aheadMs).toUTCString();
    t.mock.method(globalThis, "fetch", async () => new Response("{}", { headers: { date } }));
    await door.me();
    assert.ok(Math.abs(doorNowMs() - Date.now() - aheadMs) < hourMs, date);
  }
});
