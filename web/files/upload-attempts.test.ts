// Which refusals of an upload pass, for how long it is tried, and what begins the patience anew.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Refusal } from "./api.ts";
import { Attempts } from "./upload-attempts.ts";

const refused = (status: number, error: string): Refusal => new Refusal(status, { error, message: error });
const AWAY = refused(503, "AWAY");

/** Waits until nothing helps any more. */
function waitsOf(attempts: Attempts): number[] {
  const waits: number[] = [];
  for (;;) {
    const next = attempts.after(AWAY);
    if (next === undefined) return waits;
    waits.push(next.waitMs);
    assert.ok(waits.length < 1_000);
  }
}

test("a conflict is tried again where it is one of offsets, and no other", () => {
  for (const code of ["OFFSET_MISMATCH", "UPLOAD_TAKEN_OVER", "NO_SUCH_UPLOAD"])
    assert.ok(new Attempts().after(refused(409, code)), code);
  for (const code of ["NOT_DIRECTORY", "PATH_EXISTS", "REFUSED", "NO_SUCH_LOCK"])
    assert.equal(new Attempts().after(refused(409, code)), undefined, code);
  for (const status of [0, 429, 502, 503, 504])
    assert.ok(new Attempts().after(refused(status, "REFUSED")), String(status));
});

test("waits grow, and end after sixty failures in a row", () => {
  const waits = waitsOf(new Attempts());
  assert.equal(waits.length, 59);
  assert.deepEqual(waits.slice(0, 6), [500, 1_000, 2_000, 4_000, 8_000, 8_000]);
});

test("bytes that became safe begin the patience anew; the same ones again do not", () => {
  const attempts = new Attempts();
  assert.equal(attempts.isRepeated, false);
  attempts.noteSafe(4_000_000);
  assert.equal(waitsOf(attempts).length, 59);
  assert.equal(attempts.isRepeated, true);
  attempts.noteSafe(4_000_000);
  attempts.noteSafe(0);
  assert.equal(attempts.after(AWAY), undefined);
  attempts.noteSafe(8_000_000);
  assert.equal(attempts.after(AWAY)?.waitMs, 500);
  assert.equal(attempts.after(AWAY)?.waitMs, 1_000);
});

test("a path that is missing is tried once more at once, and again only after bytes became safe", () => {
  const attempts = new Attempts();
  const missing = refused(404, "NO_SUCH_PATH");
  assert.deepEqual(attempts.after(missing), { waitMs: 0, isFolderGone: true });
  assert.equal(attempts.after(missing), undefined);
  attempts.noteSafe(1);
  assert.equal(attempts.after(missing)?.isFolderGone, true);
});
