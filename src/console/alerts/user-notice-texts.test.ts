// The words of notices: what is used, what is trash, what to do, and nothing that a client could put there.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { UserNotice } from "./user-notice.ts";
import { userMailText, userWebhookPayload } from "./user-notice-texts.ts";

const GIB = 1_073_741_824;
const full: UserNotice = {
  kind: "quota_full",
  username: "ann@example.net",
  atMs: 1_790_000_000_000,
  usedBytes: 16 * GIB,
  quotaBytes: 16 * GIB,
  trashBytes: 2 * GIB,
};

test("a full quota says how much of what is used, how much is trash, and the command that frees it", () => {
  const { subject, text } = userMailText(full, "https://files.example.net/");
  assert.equal(subject, "[grove] Your storage is full");
  assert.match(text, /^16 GiB of 16 GiB are used \(100 %\), of which 2 GiB are in the trash\.\n/);
  assert.match(text, /New files are refused/);
  assert.match(text, /empty the trash, which frees 2 GiB: grove trash empty\n/);
  assert.match(text, /In a browser: https:\/\/files\.example\.net\/\n/);
  assert.match(text, /grove notices off\n$/);
});

test("without trash and without a door's page neither is named", () => {
  const { subject, text } = userMailText(
    { ...full, kind: "quota_80", usedBytes: 13 * GIB, trashBytes: 0 },
    undefined,
  );
  assert.equal(subject, "[grove] 81.25 % of your storage is used");
  assert.match(text, /grove rm PATH/);
  assert.doesNotMatch(text, /in the trash|browser|New files are refused until/);
});

test("managers hear of their group's root, and of no trash that is not theirs", () => {
  const { subject, text } = userMailText({ ...full, group: "lab" }, undefined);
  assert.equal(subject, "[grove] The storage of the group lab is full");
  assert.match(text, /grove rm lab@group:\/PATH/);
  assert.match(text, /because you manage the group lab/);
  assert.doesNotMatch(text, /grove trash empty/);
});

test("old trash is told with the day from which on it is deleted, and how to bring it back", () => {
  const { text } = userMailText({ ...full, kind: "trash", expiresMs: 1_790_400_000_000 }, undefined);
  assert.match(text, /Your trash holds 2 GiB\..*from 2026-09-26 05:20 UTC on/);
  assert.match(text, /grove trash restore PATH/);
});

test("a device's name makes no link and no line of its own", () => {
  const { text } = userMailText(
    {
      kind: "sign_in",
      username: "ann@example.net",
      atMs: 1_790_000_000_000,
      address: "203.0.113.7",
      device: "Müllers Laptop\n\nConfirm at http://evil.example/<x>",
    },
    undefined,
  );
  assert.match(
    text,
    /at 2026-09-21 14:13 UTC from 203\.0\.113\.7 \(Müllers Laptop Confirm at http evil exam\)\.\n/,
  );
  assert.doesNotMatch(text, /:\/\/|evil\.example/);
  assert.match(text, /grove logout --everywhere/);
});

test("a webhook gets Alertmanager's form, with the figures and one fingerprint for each user and kind", () => {
  const payload = userWebhookPayload(full, "hook", "https://files.example.net/");
  const [alert] = payload.alerts;
  assert.equal(payload.version, "4");
  assert.equal(alert?.labels["username"], "ann@example.net");
  assert.equal(alert.annotations["trash_bytes"], String(2 * GIB));
  const again = userWebhookPayload({ ...full, atMs: 1_790_000_100_000 }, "hook", undefined);
  assert.equal(again.alerts[0]?.fingerprint, alert.fingerprint);
  const other = userWebhookPayload({ ...full, username: "bob@example.net" }, "hook", undefined);
  assert.notEqual(other.alerts[0]?.fingerprint, alert.fingerprint);
});
