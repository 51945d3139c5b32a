// The settings file of notifications: accepted forms, and a clear error without secrets for all others.
import assert from "node:assert/strict";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, test } from "node:test";
import { isGroveError } from "#base/errors.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { type NotificationSettings, readNotificationSettings } from "./notification-settings.ts";

let folder = "";
beforeEach(async () => {
  folder = scratchFolder("grove-notice-settings-");
});

type Parts = Record<string, unknown>;
const webhook = (more: Parts = {}): Parts => ({
  receivers: [{ name: "ops", webhook: { url: "https://alerts.example.net/hook", ...more } }],
});
const email = (more: Parts = {}): Parts => ({
  receivers: [
    {
      name: "mail",
      email: {
        to: ["ops@example.net"],
        from: "grove@example.net",
        host: "mail.example.net",
        port: 587,
        ...more,
      },
    },
  ],
});
async function read(content: unknown, env: Record<string, string> = {}): Promise<NotificationSettings> {
  const path = join(folder, "notices.json");
  await writeFile(path, typeof content === "string" ? content : JSON.stringify(content));
  return readNotificationSettings(path, env);
}
async function problemOf(content: unknown, env: Record<string, string> = {}): Promise<string> {
  const error: unknown = await read(content, env).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!isGroveError(error, "BAD_ARGUMENT")) throw new Error(`no refusal but ${String(error)}`);
  assert.match(error.message, /notices\.json/);
  return error.message;
}

test("a receiver and nothing else gives D11's numbers", async () => {
  const settings = await read(webhook());
  assert.equal(settings.groupMs, 30_000);
  assert.equal(settings.repeatMs, 4 * 3_600_000);
  assert.deepEqual(settings.groupBy, ["alertname"]);
  assert.equal(settings.receivers[0]?.minSeverity, "warning");
});

test("secrets come from private files beside the settings, or from the environment", async () => {
  await writeFile(join(folder, "hmac"), "from a file\n", { mode: 0o600 });
  const settings = await read(
    webhook({ signing_secret: { file: "hmac" }, bearer_token: { env: "NTFY_TOKEN" } }),
    { NTFY_TOKEN: "from the environment" },
  );
  const [receiver] = settings.receivers;
  assert.ok(receiver?.kind === "webhook");
  assert.equal(receiver.signingSecret, "from a file");
  assert.equal(receiver.bearerToken, "from the environment");
});

test("certificates to trust instead of the system's lie beside the settings, for webhooks and for mail", async () => {
  await writeFile(join(folder, "ca.pem"), "-----BEGIN CERTIFICATE-----");
  for (const file of [webhook({ ca_file: "ca.pem" }), email({ ca_file: "ca.pem" })])
    assert.equal((await read(file)).receivers[0]?.ca, "-----BEGIN CERTIFICATE-----");
  assert.equal((await read(webhook())).receivers[0]?.ca, undefined);
  assert.match(await problemOf(webhook({ ca_file: "none.pem" })), /receivers\.0: .*ENOENT/);
});

test("a secret that is missing, empty or readable by others is named by its place", async () => {
  const secret = { signing_secret: { file: "hmac" } };
  assert.match(await problemOf(webhook(secret)), /receivers\.0: there is no file/);
  await writeFile(join(folder, "hmac"), "hush", { mode: 0o600 });
  await chmod(join(folder, "hmac"), 0o644);
  assert.match(await problemOf(webhook(secret)), /chmod 600/);
  await writeFile(join(folder, "empty"), "\n", { mode: 0o600 });
  assert.match(await problemOf(webhook({ signing_secret: { file: "empty" } })), /it is empty/);
  assert.match(await problemOf(webhook({ signing_secret: { env: "NOPE" } })), /variable NOPE is not set/);
  assert.match(await problemOf(webhook({ signing_secret: { env: "A", file: "b" } })), /"file" or "env"/);
  const text = await problemOf(webhook({ bearer_token: { env: "T" } }), { T: "hush\r\nX-Evil: 1" });
  assert.match(text, /control characters/);
  assert.doesNotMatch(text, /hush/);
  assert.match(await problemOf(webhook({ bearer_token: "hush" })), /receivers\.0\.webhook\.bearer_token/);
  assert.doesNotMatch(await problemOf(webhook({ bearer_token: "hush" })), /hush/);
});

test("only https leaves the machine, unless it is said that plain http is meant", async () => {
  for (const url of [
    "http://alerts.example.net/",
    "http://10.0.0.1/",
    "http://127.0.0.1.evil.net/",
    "http://localhost.evil.net",
  ]) {
    assert.match(await problemOf(webhook({ url })), /only https leaves this machine/, url);
    assert.equal((await read(webhook({ url, allow_plain_http: true }))).receivers.length, 1);
  }
  for (const url of ["http://127.0.0.1:9/x", "http://localhost:9", "http://[::1]:9/"]) {
    assert.equal((await read(webhook({ url }))).receivers.length, 1, url);
  }
  for (const url of ["ftp://a.b/", "file:///etc/passwd", "https://", "nothing"]) {
    assert.match(await problemOf(webhook({ url })), /not an http or https address/, url);
  }
  assert.match(await problemOf(webhook({ url: "https://u:p4ss@a.b/" })), /user name or password/);
});

test("mail goes with TLS, unless it stays on this machine or it is said that it is meant", async () => {
  const [receiver] = (await read(email())).receivers;
  assert.ok(receiver?.kind === "email");
  assert.equal(receiver.security, "starttls");
  assert.match(await problemOf(email({ security: "none" })), /in the clear/);
  assert.equal((await read(email({ security: "none", host: "127.0.0.1" }))).receivers.length, 1);
  assert.equal((await read(email({ security: "none", allow_plain_smtp: true }))).receivers.length, 1);
  const login = { username: "grove", password: { env: "P" } };
  assert.match(
    await problemOf(email({ security: "none", allow_plain_smtp: true, ...login }), { P: "x" }),
    /password is not sent without TLS/,
  );
  assert.match(await problemOf(email({ username: "grove" })), /belong together/);
  for (const to of ["ops", "a@b,c@d", "a@b\r\nBcc: x@y", "<a@b>"]) {
    assert.match(
      await problemOf(email({ to: [to] })),
      /receivers\.0\.email\.to\.0: not an e-mail address/,
      to,
    );
  }
});

test("what is misspelt, doubled or out of range is refused with its place", async () => {
  const [first] = webhook()["receivers"] as Parts[];
  const table: [unknown, RegExp][] = [
    ["{", /it is not JSON/],
    [[], /the file: /],
    [{}, /receivers: /],
    [{ receivers: [] }, /receivers: /],
    [{ ...webhook(), recievers: [] }, /recievers/],
    [{ ...webhook(), schema: 2 }, /schema: /],
    [{ receivers: [first, first] }, /receivers\.1\.name: ops is there twice/],
    [{ receivers: [{ name: "a b", webhook: { url: "https://a.b" } }] }, /receivers\.0\.name/],
    [{ receivers: [{ name: "none" }] }, /"webhook" or "email"/],
    [{ ...webhook(), quota_user_receiver: "users" }, /there is no receiver users/],
    [{ ...webhook(), group_seconds: 601 }, /group_seconds/],
    [{ ...webhook(), group_seconds: -1 }, /group_seconds/],
    [{ ...webhook(), repeat_hours: 0 }, /repeat_hours/],
    [{ ...webhook(), group_by: ["severity"] }, /group_by\.0/],
    [{ ...webhook(), console_url: "javascript:alert(1)" }, /console_url/],
    [email({ port: 0 }), /receivers\.0\.email\.port/],
    [email({ host: "a b" }), /receivers\.0\.email\.host/],
  ];
  for (const [content, problem] of table) assert.match(await problemOf(content), problem);
  await assert.rejects(
    readNotificationSettings(join(folder, "absent.json"), {}),
    /absent\.json cannot be read/,
  );
});

test("users are told by named receivers about all, unless the file says about what", async () => {
  const all = await read({ ...email(), user_notices: { receivers: ["mail"] } });
  assert.deepEqual(all.userNotices?.about, ["quota", "trash", "sign_in"]);
  assert.deepEqual(
    all.userNotices?.receivers.map(({ name }) => name),
    ["mail"],
  );
  const some = { receivers: ["mail", "mail"], about: ["trash"], page_url: "https://files.example.net/" };
  const told = (await read({ ...email(), user_notices: some })).userNotices;
  assert.deepEqual([told?.receivers.length, told?.about, told?.pageUrl], [1, ["trash"], some.page_url]);
  assert.equal((await read(email())).userNotices, undefined);
});

test("notices to users name receivers that are there, known subjects, and no second way for quotas", async () => {
  const wrong = (user: Parts, more: Parts = {}): Promise<string> =>
    problemOf({ ...email(), user_notices: { receivers: ["mail"], ...user }, ...more });
  assert.match(await wrong({ receivers: ["pager"] }), /user_notices\.receivers: there is no receiver pager/);
  assert.match(await wrong({ receivers: [] }), /user_notices\.receivers/);
  assert.match(await wrong({ about: ["weather"] }), /user_notices\.about/);
  assert.match(await wrong({ page_url: "javascript:alert(1)" }), /user_notices\.page_url/);
  assert.match(await wrong({}, { quota_user_receiver: "mail" }), /leave quota_user_receiver out/);
});
