// Mails through a real SMTP server: sign-in, STARTTLS, refusals, and no secrets in errors.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMailSender } from "./mail-sender.ts";
import type { NotificationAlert } from "./notification.ts";
import type { QueuedNotification } from "./notification-queue.ts";
import type { EmailSettings } from "./notification-settings.ts";
import { MailServer, makeTestCertificate } from "./receivers.fixture.ts";

const alert: NotificationAlert = {
  key: "quota_exceeded:ann@example.net",
  type: "quota_exceeded",
  status: "firing",
  reason: "raised",
  severity: "critical",
  worst: "critical",
  username: "ann@example.net",
  value: 100,
  startsAtMs: 1_790_000_000_000,
};
const queued: QueuedNotification = {
  seq: 7,
  receiver: "mail",
  createdWallMs: 1_790_000_030_000,
  notice: { group: { alertname: "quota_exceeded" }, status: "firing", alerts: [alert], truncated: 0 },
};
const settings = (port: number, more: Partial<EmailSettings> = {}): EmailSettings => ({
  kind: "email",
  name: "mail",
  minSeverity: "warning",
  to: ["ops@example.net", "boss@example.net"],
  from: "grove@example.net",
  host: "127.0.0.1",
  port,
  security: "none",
  username: undefined,
  password: undefined,
  ca: undefined,
  ...more,
});
const never = new AbortController().signal;

test("a mail reaches everybody, as text, with a number that a repetition shares", async () => {
  const server = new MailServer();
  const sender = createMailSender(settings(await server.listen()), "https://c.example.net/");
  assert.deepEqual(await sender.send(queued, never), { kind: "delivered" });
  assert.deepEqual(await sender.send(queued, never), { kind: "delivered" });
  const [mail, again] = server.mails;
  assert.equal(mail?.from, "grove@example.net");
  assert.deepEqual(mail.to, ["ops@example.net", "boss@example.net"]);
  assert.match(mail.data, /Subject: \[grove critical\] ann@example\.net used 100 % of the quota/);
  assert.match(mail.data, /Content-Type: text\/plain/);
  assert.match(mail.data, /Auto-Submitted: auto-generated/);
  const id = /^Message-ID: (.*)$/m.exec(mail.data)?.[1];
  assert.equal(id, "<1790000030000-7.grove@example.net>");
  assert.equal(/^Message-ID: (.*)$/m.exec(again?.data ?? "")?.[1], id);
  await server.close();
});

test("a user's own mail goes to the user alone", async () => {
  const server = new MailServer();
  const sender = createMailSender(settings(await server.listen()), "");
  await sender.send({ ...queued, to: "ann@example.net" }, never);
  assert.deepEqual(server.mails[0]?.to, ["ann@example.net"]);
  await server.close();
});

test("with STARTTLS nothing is said in the clear, neither the password nor the mail; the authority decides", async () => {
  const [own, other] = [makeTestCertificate(), makeTestCertificate()];
  const server = new MailServer({ tls: own, login: { user: "grove", password: "s3cret" } });
  const port = await server.listen();
  const login = { security: "starttls", username: "grove", password: "s3cret", ca: own.cert } as const;
  assert.deepEqual(await createMailSender(settings(port, login), "").send(queued, never), {
    kind: "delivered",
  });
  assert.equal(server.mails[0]?.isEncrypted, true);
  assert.equal(server.mails[0].signedInAs, "grove");
  const foreign = await createMailSender(settings(port, { ...login, ca: other.cert }), "").send(
    queued,
    never,
  );
  assert.equal(foreign.kind, "failed");
  const wrong = await createMailSender(settings(port, { ...login, password: "gu3ss" }), "").send(
    queued,
    never,
  );
  assert.equal(wrong.kind, "failed");
  assert.match(JSON.stringify(wrong), /535/);
  assert.doesNotMatch(JSON.stringify([foreign, wrong]), /s3cret|gu3ss/);
  assert.equal(server.mails.length, 1);
  await server.close();
});

test("of a refused sign-in only the number is told, and not what it was answered to, where that is no plain command", async () => {
  const server = new MailServer();
  const login = { username: "grove", password: "s3cret" };
  const sender = createMailSender(settings(await server.listen(), login), "");
  server.answers = { EHLO: "250-test\r\n250 AUTH CRAM-MD5", AUTH: "535 s3cret is wrong" };
  assert.deepEqual(await sender.send(queued, never), { kind: "failed", why: "it answered 535" });
  server.answers = { MAIL: "535 s3cret is wrong" };
  assert.deepEqual(await sender.send(queued, never), {
    kind: "refused",
    why: "it answered 535 to MAIL FROM",
  });
  await server.close();
});

test("a server that offers no STARTTLS gets neither mail nor password where it is asked for", async () => {
  const server = new MailServer({ login: { user: "grove", password: "s3cret" } });
  const login = { security: "starttls", username: "grove", password: "s3cret" } as const;
  const result = await createMailSender(settings(await server.listen(), login), "").send(queued, never);
  assert.equal(result.kind, "failed");
  assert.equal(server.mails.length, 0);
  await server.close();
});

test("an address that does not exist is refused for good; a mailbox that is busy is tried again", async () => {
  const server = new MailServer();
  const sender = createMailSender(settings(await server.listen()), "");
  server.answers = { RCPT: "550 no such user here s3cret" };
  const refused = await sender.send(queued, never);
  assert.equal(refused.kind, "refused");
  assert.doesNotMatch(JSON.stringify(refused), /s3cret/);
  for (const answers of [{ RCPT: "451 busy" }, { MAIL: "421 not now" }, { BODY: "452 full" }]) {
    server.answers = answers;
    assert.equal((await sender.send(queued, never)).kind, "failed");
  }
  server.answers = { BODY: "554 spam" };
  assert.equal((await sender.send(queued, never)).kind, "refused");
  await server.close();
  assert.equal((await sender.send(queued, never)).kind, "failed");
});

test("a recipient that is refused for good keeps the mail from nobody else, and is told by address and number", async () => {
  const server = new MailServer();
  const sender = createMailSender(settings(await server.listen()), "");
  server.answers = { "RCPT boss@example.net": "550 no such user here s3cret" };
  assert.deepEqual(await sender.send(queued, never), {
    kind: "partly",
    why: "it answered 550 for boss@example.net; the other recipients have the mail",
    isOpen: false,
  });
  assert.deepEqual(server.mails[0]?.to, ["ops@example.net"]);
  await server.close();
});

test("a recipient that is busy gets the mail by another try, and nobody else gets it twice", async () => {
  const server = new MailServer();
  const to = ["ops@example.net", "boss@example.net", "gone@example.net"];
  const sender = createMailSender(settings(await server.listen(), { to }), "");
  server.answers = { "RCPT boss@example.net": "451 busy", "RCPT gone@example.net": "550 no" };
  const first = await sender.send(queued, never);
  assert.deepEqual(first, {
    kind: "partly",
    why: "it answered 550 for gone@example.net, 451 for boss@example.net; the other recipients have the mail",
    isOpen: true,
  });
  for (const answers of [server.answers, { MAIL: "421 not now" }, { BODY: "452 full" }]) {
    server.answers = answers;
    assert.deepEqual(await sender.send(queued, never), first);
  }
  server.answers = {};
  assert.deepEqual(await sender.send(queued, never), {
    kind: "partly",
    why: "it answered 550 for gone@example.net; the other recipients have the mail",
    isOpen: false,
  });
  assert.deepEqual(
    server.mails.map((mail) => mail.to),
    [["ops@example.net"], ["boss@example.net"]],
  );
  assert.match(server.mails[1]?.data ?? "", /^To: ops@example\.net, boss@example\.net/m);
  assert.deepEqual(await sender.send({ ...queued, seq: 8 }, never), { kind: "delivered" });
  assert.deepEqual(server.mails[2]?.to, to);
  await server.close();
});

test("a busy recipient that is refused for good at the next try is not tried a third time", async () => {
  const server = new MailServer();
  const sender = createMailSender(settings(await server.listen()), "");
  server.answers = { "RCPT boss@example.net": "451 busy" };
  await sender.send(queued, never);
  server.answers = { "RCPT boss@example.net": "550 no" };
  const second = await sender.send(queued, never);
  assert.deepEqual([second.kind, second.kind === "partly" && second.isOpen], ["partly", false]);
  await server.close();
});

test("a server that says nothing is left when the time is over", async () => {
  const server = new MailServer();
  server.answers = { EHLO: "" };
  const sender = createMailSender(settings(await server.listen()), "");
  const over = new AbortController();
  setTimeout(() => over.abort(), 50);
  const result = await sender.send(queued, over.signal);
  assert.equal(result.kind, "failed");
  await server.close();
});
