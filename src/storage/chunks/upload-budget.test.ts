// Tests of the upload budget: both sides of the limit, the wake-ups, and the gathered bytes per upload.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  UPLOAD_GATHER_BYTES,
  UPLOAD_GATHER_MIN_BYTES,
  UPLOADS_GATHERED_BYTES,
  UPLOADS_IN_FLIGHT_BYTES,
  UPLOADS_IN_FLIGHT_BYTES_PER_USER,
  UploadBudget,
} from "./upload-budget.ts";

test("senders wait for as long as more is in flight than the budget, and are each woken once", () => {
  const all = new UploadBudget();
  const others = all.shareOf("b");
  others.begin();
  others.take(UPLOADS_IN_FLIGHT_BYTES - 10);
  const budget = all.shareOf("a");
  budget.begin();
  let woken = 0;
  const wake = (): number => ++woken;
  assert.equal(budget.isSpent, false);
  budget.take(10);
  assert.equal(budget.isSpent, false);
  budget.take(2);
  assert.equal(budget.isSpent, true);
  budget.whenFree(wake);
  budget.whenFree(wake);
  budget.give(1);
  assert.deepEqual([budget.isSpent, woken], [true, 0]);
  budget.give(1);
  assert.deepEqual([budget.isSpent, woken], [false, 1]);
  budget.give(1);
  assert.equal(woken, 1);
});

test("who is woken may wait anew", () => {
  const budget = new UploadBudget().shareOf("a");
  let woken = 0;
  const wake = (): void => {
    woken++;
    budget.whenFree(wake);
  };
  budget.whenFree(wake);
  budget.give(0);
  budget.give(0);
  assert.equal(woken, 2);
});

test("an upload gathers less, the more there are, within its bounds", () => {
  const budget = new UploadBudget().shareOf("a");
  assert.equal(budget.gatherBytes, UPLOAD_GATHER_BYTES);
  const alone = UPLOADS_GATHERED_BYTES / UPLOAD_GATHER_BYTES;
  for (let open = 0; open < alone; open++) budget.begin();
  assert.equal(budget.gatherBytes, UPLOAD_GATHER_BYTES);
  budget.begin();
  assert.equal(budget.gatherBytes, UPLOADS_GATHERED_BYTES / (alone + 1));
  budget.end();
  assert.equal(budget.gatherBytes, UPLOAD_GATHER_BYTES);
  for (let open = 0; open < 10_000; open++) budget.begin();
  assert.equal(budget.gatherBytes, UPLOAD_GATHER_MIN_BYTES);
});

test("one user's uploads wait at the user's part, and nobody else's do", () => {
  const all = new UploadBudget();
  const [greedy, modest] = [all.shareOf("a"), all.shareOf("b")];
  greedy.begin();
  modest.begin();
  greedy.take(UPLOADS_IN_FLIGHT_BYTES_PER_USER);
  assert.equal(greedy.isSpent, false);
  greedy.take(1);
  assert.deepEqual([greedy.isSpent, modest.isSpent], [true, false]);
  let woken = 0;
  greedy.whenFree(() => ++woken);
  modest.take(5);
  modest.give(5);
  assert.equal(woken, 0);
  greedy.give(1);
  assert.equal(woken, 1);
});

test("a user of whom nothing is open or on its way is forgotten", () => {
  const all = new UploadBudget();
  const share = all.shareOf("a");
  share.begin();
  share.take(7);
  share.end();
  assert.equal(all.users, 1);
  assert.equal(all.shareOf("a"), share);
  share.give(7);
  assert.equal(all.users, 0);
});
