// What users are told: each level at both of its sides, once a day, and what is remembered of whom.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DAY_MS } from "#base/duration.ts";
import { SIGN_IN_PLACES_MAX, UserNoticeBook } from "./user-notice-book.ts";

const WALL_MS = 1_790_000_000_000;
const ANN = "ann@example.net";
const QUOTA = 10_000n;

test("80, 95 and 100 % are told when they are reached, and not a byte below", () => {
  for (const [below, reached, kind] of [
    [7_999n, 8_000n, "quota_80"],
    [9_499n, 9_500n, "quota_95"],
    [9_999n, 10_000n, "quota_full"],
  ] as const) {
    const before = new UserNoticeBook(undefined).quota(ANN, below, QUOTA, WALL_MS);
    assert.notEqual(before, kind);
    assert.equal(new UserNoticeBook(undefined).quota(ANN, reached, QUOTA, WALL_MS), kind);
  }
  const book = new UserNoticeBook(undefined);
  assert.equal(book.quota(ANN, 7_999n, QUOTA, WALL_MS), undefined);
  assert.equal(book.knows(ANN), false);
  assert.equal(book.quota(ANN, 5n, 0n, WALL_MS), undefined);
});

test("a level is told once, the next one when it is reached, and one that stays again after a week", () => {
  const book = new UserNoticeBook(undefined);
  assert.equal(book.quota(ANN, 8_000n, QUOTA, WALL_MS), "quota_80");
  assert.equal(book.quota(ANN, 9_000n, QUOTA, WALL_MS + 2 * DAY_MS), undefined);
  assert.equal(book.quota(ANN, 9_500n, QUOTA, WALL_MS + 2 * DAY_MS), "quota_95");
  assert.equal(book.quota(ANN, 9_500n, QUOTA, WALL_MS + 9 * DAY_MS - 1), undefined);
  assert.equal(book.quota(ANN, 9_500n, QUOTA, WALL_MS + 9 * DAY_MS), "quota_95");
});

test("a level that was left by five percent is told anew, but never twice within a day", () => {
  const book = new UserNoticeBook(undefined);
  assert.equal(book.quota(ANN, 8_000n, QUOTA, WALL_MS), "quota_80");
  // 75 % is not left yet.
  assert.equal(book.quota(ANN, 7_500n, QUOTA, WALL_MS + DAY_MS), undefined);
  assert.equal(book.quota(ANN, 8_000n, QUOTA, WALL_MS + DAY_MS), undefined);
  assert.equal(book.quota(ANN, 7_499n, QUOTA, WALL_MS + DAY_MS), undefined);
  assert.equal(book.quota(ANN, 8_000n, QUOTA, WALL_MS + DAY_MS), "quota_80");
  assert.equal(book.quota(ANN, 1n, QUOTA, WALL_MS + DAY_MS), undefined);
  assert.equal(book.quota(ANN, 8_000n, QUOTA, WALL_MS + 2 * DAY_MS - 1), undefined);
  assert.equal(book.quota(ANN, 8_000n, QUOTA, WALL_MS + 2 * DAY_MS), "quota_80");
});

test("whatever is used when, nobody hears of one kind twice within a day, also over restarts", () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ used: fc.bigInt(0n, 11_000n), afterMs: fc.nat(DAY_MS) }), { maxLength: 60 }),
      (steps) => {
        let book = new UserNoticeBook(undefined);
        let wallMs = WALL_MS;
        const told = new Map<string, number>();
        for (const { used, afterMs } of steps) {
          wallMs += afterMs;
          book = new UserNoticeBook(book.kept());
          const kind = book.quota(ANN, used, QUOTA, wallMs);
          if (kind === undefined) continue;
          assert.ok(wallMs - (told.get(kind) ?? 0) >= DAY_MS, kind);
          told.set(kind, wallMs);
        }
      },
    ),
  );
});

test("old trash is told seven days before its end, and not again for six days", () => {
  const book = new UserNoticeBook(undefined);
  const expiresMs = WALL_MS + 7 * DAY_MS;
  assert.equal(book.trash(ANN, expiresMs + 1, WALL_MS), false);
  assert.equal(book.trash(ANN, expiresMs, WALL_MS), true);
  assert.equal(book.trash(ANN, expiresMs, WALL_MS + 6 * DAY_MS - 1), false);
  assert.equal(book.trash(ANN, expiresMs, WALL_MS + 6 * DAY_MS), true);
});

test("a place is told once, a second new one no sooner than a day after the first", () => {
  const book = new UserNoticeBook(undefined);
  assert.equal(book.signIn(ANN, "laptop", WALL_MS), true);
  assert.equal(book.signIn(ANN, "laptop", WALL_MS + 3 * DAY_MS), false);
  assert.equal(book.signIn(ANN, "phone", WALL_MS + 3 * DAY_MS), true);
  assert.equal(book.signIn(ANN, "thief", WALL_MS + 4 * DAY_MS - 1), false);
  // It was not told, so it is not known.
  assert.equal(book.signIn(ANN, "thief", WALL_MS + 4 * DAY_MS), true);
  const again = new UserNoticeBook(book.kept());
  assert.equal(again.signIn(ANN, "laptop", WALL_MS + 9 * DAY_MS), false);
  assert.equal(again.signIn("bob@example.net", "laptop", WALL_MS), true);
});

test("of each user the last places are remembered, and those in use stay", () => {
  const book = new UserNoticeBook(undefined);
  let wallMs = WALL_MS;
  book.signIn(ANN, "home", wallMs);
  for (let at = 1; at < SIGN_IN_PLACES_MAX; at++) book.signIn(ANN, `hotel ${at}`, (wallMs += DAY_MS));
  assert.equal(book.signIn(ANN, "home", wallMs), false);
  assert.equal(book.signIn(ANN, "one more", (wallMs += DAY_MS)), true);
  assert.equal(book.signIn(ANN, "home", wallMs), false);
  assert.equal(book.signIn(ANN, "hotel 2", wallMs), false);
  assert.equal(book.signIn(ANN, "hotel 1", (wallMs += DAY_MS)), true);
});

test("beyond its bound the book forgets whom it has not heard of for longest", () => {
  const book = new UserNoticeBook(undefined, 2);
  for (const user of ["a@x", "b@x", "a@x", "c@x"]) book.signIn(user, "laptop", WALL_MS);
  assert.deepEqual(
    ["a@x", "b@x", "c@x"].map((user) => book.knows(user)),
    [true, false, true],
  );
});

test("a clock that ran a year ahead keeps nobody from being told once it is right", () => {
  const book = new UserNoticeBook(undefined);
  assert.equal(book.quota(ANN, 10_000n, QUOTA, WALL_MS + 365 * DAY_MS), "quota_full");
  assert.equal(book.quota(ANN, 10_000n, QUOTA, WALL_MS), "quota_full");
  assert.equal(book.quota(ANN, 10_000n, QUOTA, WALL_MS + 1), undefined);
});
