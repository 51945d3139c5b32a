// From conditions to real receivers: arrival at a webhook, its failures, and restarts (decision D11).
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { basename, join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import type { Logger } from "#base/log.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { noticesReply } from "#wire/webapi/notification.ts";
import type { Condition } from "./condition.ts";
import { diskCondition } from "./notification-service.fixture.ts";
import type { ReceiverSettings } from "./notification-settings.ts";
import { openNotifier, settingsFor, webhookFor } from "./notifier.fixture.ts";
import { MailServer, makeTestCertificate, type WebhookAnswer, WebhookReceiver } from "./receivers.fixture.ts";

let folder = "";
let receiver = new WebhookReceiver();
let port = 0;
const closing: (() => Promise<void>)[] = [];

beforeEach(async () => {
  folder = scratchFolder("grove-notices-");
  receiver = new WebhookReceiver();
  port = await receiver.listen();
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  await receiver.close();
});

const full: Condition[] = [diskCondition("n1", 90)];
const calm: Condition[] = [diskCondition("n1", 10)];
const open: typeof openNotifier = async (...args) => {
  const opened = await openNotifier(...args);
  closing.push(() => opened.notifier.close());
  return opened;
};
/** A mailbox on this machine. */
const mailFor = (mailPort: number, to: readonly string[]): ReceiverSettings => ({
  kind: "email",
  name: "mail",
  minSeverity: "warning",
  to,
  from: "grove@example.net",
  host: "127.0.0.1",
  port: mailPort,
  security: "none",
  username: undefined,
  password: undefined,
  ca: undefined,
});
/** A log whose lines can be read. */
function listed(): { lines: string[]; log: Logger } {
  const lines: string[] = [];
  const take = (event: string, fields?: object): void => void lines.push(JSON.stringify([event, fields]));
  const log: Logger = { debug: take, info: take, warn: take, error: take, child: () => log };
  return { lines, log };
}
/** The alerts that a receiver got, in short form. */
const told = (): string[] =>
  receiver.calls.flatMap(({ payload }) =>
    payload.alerts.map(({ status, labels }) => `${status} ${labels["node_id"]}`),
  );

test("a webhook gets a signed message of Alertmanager's form when an alert is raised and when it is over (D11)", async () => {
  const hook = webhookFor(port, { signingSecret: "a secret", bearerToken: "a token" });
  const { until } = await open(folder, settingsFor([hook]));
  await until(() => receiver.calls.length === 1, full);
  await until(() => receiver.calls.length === 2, calm);
  assert.deepEqual(told(), ["firing n1", "resolved n1"]);
  const [first] = receiver.calls;
  assert.equal(first?.path, "/hook");
  assert.equal(first.headers["content-type"], "application/json");
  assert.equal(first.headers["authorization"], "Bearer a token");
  const hmac = createHmac("sha256", "a secret").update(first.body).digest("hex");
  assert.equal(first.headers["x-svc-signature"], `sha256=${hmac}`);
});

test("without settings nothing is told and nothing is written; silences and maintenance work all the same (spec 6)", async () => {
  const { notifier, clock, run } = await open(folder, undefined);
  await run(120, [diskCondition("n1", 99)]);
  assert.equal(notifier.view().enabled, false);
  assert.deepEqual(notifier.view().alerts, []);
  assert.deepEqual(
    (await readdir(folder)).filter((name) => name !== "notice_queue"),
    [],
  );
  const id = notifier.openMaintenance({
    nodeIds: ["n1"],
    untilWallMs: clock.wallMs() + 60_000,
    reason: "restart",
  });
  assert.equal(notifier.maintenanceUntil("n1"), clock.wallMs() + 60_000);
  notifier.closeMaintenance(id);
});

test("of a node that an operator has put into maintenance nothing is told, also after a restart, until it ends (D11)", async () => {
  const { notifier, clock, run } = await open(folder, settingsFor([webhookFor(port)]));
  await notifier.maintenance.begin("n1", { duration: "2h", comment: "a new disk" }, "operator:1");
  assert.equal(notifier.maintenanceUntil("n1"), (Math.trunc(clock.wallMs() / 1_000) + 7_200) * 1_000);
  await run(120, [diskCondition("n1", 99)]);
  assert.deepEqual(
    notifier.view().alerts.map(({ muted_by: by }) => by),
    ["maintenance"],
  );
  assert.deepEqual(receiver.calls, []);
  const [window] = notifier.view().maintenance;
  assert.deepEqual([window?.node_ids, window?.reason], [["n1"], "a new disk"]);
  await notifier.close();
  const again = await open(folder, settingsFor([webhookFor(port)]), { clock });
  assert.equal(again.notifier.maintenance.of("n1")?.comment, "a new disk");
  assert.equal((await again.notifier.maintenance.end("n1"))?.node_id, "n1");
  assert.equal(await again.notifier.maintenance.end("n1"), undefined);
  await again.until(() => receiver.calls.length === 1, [diskCondition("n1", 99)]);
  assert.deepEqual(told(), ["firing n1"]);
});

test("three tries 1 s and 5 s apart, then a rest; the message stays and is delivered when the receiver is back (D11)", async () => {
  const answers: WebhookAnswer[] = [500, 503, "cut", 200];
  receiver.answer = () => answers.shift() ?? 200;
  const times: number[] = [];
  const { clock, until, notifier, run } = await open(folder, settingsFor([webhookFor(port)]));
  const { answer } = receiver;
  receiver.answer = (call) => {
    times.push(clock.steadyMs());
    return answer(call);
  };
  await until(() => receiver.calls.length === 3, full);
  await run(5, full);
  assert.equal(notifier.view().receivers[0]?.state, "failing");
  assert.equal(notifier.view().waiting.length, 1);
  await until(() => receiver.calls.length === 4, full);
  await until(() => notifier.view().counts.delivered === 1, full);
  const gaps = times.slice(1).map((time, at) => time - (times[at] ?? 0));
  assert.ok((gaps[0] ?? 0) >= 1_000 && (gaps[1] ?? 0) >= 5_000 && (gaps[2] ?? 0) >= 30_000, gaps.join(" "));
  const ids = new Set(receiver.calls.map(({ headers }) => headers["x-svc-notice"]));
  assert.equal(ids.size, 1, "a repetition can be told by its id");
  assert.equal(notifier.view().receivers[0]?.state, "ok");
  assert.equal(notifier.view().done[0]?.tries, 4);
});

test("a redirect is not followed, and nothing of it reaches the place it points to", async () => {
  const other = new WebhookReceiver();
  const otherPort = await other.listen();
  receiver.answer = () => ({ redirectTo: `http://127.0.0.1:${otherPort}/` });
  const { until, notifier } = await open(folder, settingsFor([webhookFor(port)]));
  await until(() => receiver.calls.length === 3, full);
  await until(() => notifier.view().receivers[0]?.state === "failing", full);
  assert.match(notifier.view().receivers[0]?.last_error ?? "", /302.*not followed/);
  assert.equal(other.calls.length, 0);
  await other.close();
});

test("a message that a receiver refuses for good is dropped and counted, and the next goes on", async () => {
  receiver.answer = () => (receiver.calls.length === 1 ? 422 : 200);
  const { until, notifier } = await open(folder, settingsFor([webhookFor(port)]));
  await until(() => notifier.view().counts.refused === 1, full);
  await until(
    () => notifier.view().counts.delivered === 1,
    [diskCondition("n2", 99), diskCondition("n1", 90)],
  );
  assert.equal(receiver.calls.length, 2);
});

test("a receiver that hangs, or never ends its answer, holds nobody up", { timeout: 60_000 }, async () => {
  const quick = new WebhookReceiver();
  const quickPort = await quick.listen();
  const answers: WebhookAnswer[] = ["hang", "endless"];
  receiver.answer = () => answers.shift() ?? 200;
  const hooks = [webhookFor(port, { name: "slow" }), webhookFor(quickPort, { name: "quick" })];
  const { until, notifier } = await open(folder, settingsFor(hooks));
  await until(() => quick.calls.length === 1, full);
  await until(() => notifier.view().counts.delivered === 2, full);
  assert.equal(receiver.calls.length, 2);
  await quick.close();
});

test("https is spoken with the authority that is given, and with no other", async () => {
  const [own, other] = [makeTestCertificate(), makeTestCertificate()];
  const secure = new WebhookReceiver(own);
  const url = new URL(`https://127.0.0.1:${await secure.listen()}/hook?key=hidden`);
  const hooks = [
    webhookFor(0, { name: "right", url, ca: own.cert }),
    webhookFor(0, { name: "wrong", url, ca: other.cert }),
    webhookFor(0, { name: "none", url }),
  ];
  const { until, notifier } = await open(folder, settingsFor(hooks));
  const failing = (): number => notifier.view().receivers.filter(({ state }) => state === "failing").length;
  await until(() => secure.calls.length === 1 && failing() === 2, full);
  assert.equal(notifier.view().receivers[0]?.state, "ok");
  assert.doesNotMatch(JSON.stringify(notifier.view()), /hidden/);
  await secure.close();
});

test("a message that nobody took for a day is dropped and counted", async () => {
  receiver.answer = () => 503;
  const { notifier, clock, until } = await open(folder, settingsFor([webhookFor(port)]));
  await until(() => notifier.view().waiting.length === 1, full);
  clock.advance(25 * 3_600_000);
  await until(() => notifier.view().counts.expired === 1, full);
  assert.equal(notifier.view().done[0]?.state, "expired");
});

test("a clock that is set right makes no message a day older: it is delivered (C-01)", async () => {
  receiver.answer = () => 503;
  const { notifier, clock, until } = await open(folder, settingsFor([webhookFor(port)]));
  await until(() => notifier.view().receivers[0]?.state === "failing", full);
  clock.jumpWall(400 * 86_400_000);
  receiver.answer = () => 200;
  await until(() => notifier.view().counts.delivered === 1, full);
  assert.equal(notifier.view().counts.expired, 0);
});

test("a receiver for critical alerts hears of them and of their end, and of no warning", async () => {
  const { until, run } = await open(folder, settingsFor([webhookFor(port, { minSeverity: "critical" })]));
  await run(60, full);
  assert.equal(receiver.calls.length, 0);
  await until(() => receiver.calls.length === 1, [diskCondition("n1", 99)]);
  await until(() => receiver.calls.length === 2, calm);
  assert.deepEqual(told(), ["firing n1", "resolved n1"]);
});

test("a receiver that breaks off in its answer, or gives none that HTTP knows, has taken nothing and is asked again (D11)", async () => {
  const answers = [
    "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
    "HTTP/1.1 042 What\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 000 What\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 204 No Content\r\n\r\n",
  ];
  const strange = createServer((socket) => {
    socket.on("error", () => {}).once("data", () => socket.end(answers.shift() ?? ""));
  });
  await new Promise<void>((resolve) => strange.listen(0, "127.0.0.1", resolve));
  const { until, notifier } = await open(
    folder,
    settingsFor([webhookFor((strange.address() as AddressInfo).port)]),
  );
  await until(() => notifier.view().receivers[0]?.last_error !== undefined, full);
  assert.equal(notifier.view().receivers[0]?.last_error, "it answered 0");
  await until(() => notifier.view().counts.delivered === 1, full);
  strange.close();
  assert.equal(notifier.view().done[0]?.tries, 4);
});

test("mail receivers get what webhooks get, without a link when nobody knows the console's address (D11)", async () => {
  const server = new MailServer();
  const mail = mailFor(await server.listen(), ["ops@example.net"]);
  const { until } = await open(folder, settingsFor([mail], { consoleUrl: undefined }));
  await until(() => server.mails.length === 1, full);
  await server.close();
  assert.match(server.mails[0]?.data ?? "", /Subject: \[grove warning\] n1 is 90 % full/);
  assert.doesNotMatch(server.mails[0]?.data ?? "", /https?:/);
});

test("a mail that a recipient refuses is with the others at once, holds up none that follows, and is not told as with all", async () => {
  const server = new MailServer();
  const mail = mailFor(await server.listen(), ["ops@example.net", "gone@example.net", "busy@example.net"]);
  server.answers = { "RCPT gone@example.net": "550 no", "RCPT busy@example.net": "452 full" };
  const { until, notifier } = await open(folder, settingsFor([mail]));
  await until(() => notifier.view().counts.delivered === 1, full);
  const missed =
    "it answered 550 for gone@example.net, 452 for busy@example.net; the other recipients have the mail";
  const [receiverNow, first] = [notifier.view().receivers[0], notifier.view().done[0]];
  assert.deepEqual([receiverNow?.state, receiverNow?.last_error], ["failing", missed]);
  assert.deepEqual([first?.state, first?.tries, first?.missed], ["delivered", 3, missed]);
  noticesReply.parse(notifier.view());
  await until(() => notifier.view().counts.delivered === 2, calm);
  assert.deepEqual(
    server.mails.map(({ to }) => to),
    [["ops@example.net"], ["ops@example.net"]],
  );
  server.answers = {};
  await until(() => notifier.view().counts.delivered === 3, full);
  const [healed, last] = [notifier.view().receivers[0], notifier.view().done[0]];
  assert.deepEqual([healed?.state, healed?.last_error, last?.missed], ["ok", undefined, undefined]);
  await server.close();
});

test("users' quotas go to the quota hook one by one, on top of what operators get (D11)", async () => {
  const hooks = [
    webhookFor(port),
    webhookFor(port, { name: "users", minSeverity: "none", url: new URL(`http://127.0.0.1:${port}/users`) }),
  ];
  const { until, notifier } = await open(folder, settingsFor(hooks, { quotaUserReceiver: "users" }));
  const quota = (username: string): Condition => ({
    key: `quota_exceeded:${username}`,
    type: "quota_exceeded",
    level: "critical",
    value: 100,
    username,
  });
  await until(() => notifier.view().counts.delivered === 4, [quota("a@b.c"), quota("d@e.f"), ...full]);
  const users = receiver.calls.filter(({ path }) => path === "/users");
  assert.deepEqual(
    users.map(({ payload }) => payload.groupLabels),
    [
      { alertname: "quota_exceeded", username: "a@b.c" },
      { alertname: "quota_exceeded", username: "d@e.f" },
    ],
  );
});

test("what the log and the view say of a failing receiver holds no secret and no path", async () => {
  const { lines, log } = listed();
  await receiver.close();
  const url = new URL(`http://127.0.0.1:${port}/T0KEN/in/path`);
  const hook = webhookFor(0, { url, signingSecret: "s3cret", bearerToken: "b3arer" });
  const { until, notifier } = await open(folder, settingsFor([hook]), { log });
  await until(() => notifier.view().receivers[0]?.state === "failing", full);
  const all = [...lines, JSON.stringify(notifier.view()), ...(await everyFile(folder))].join("\n");
  assert.match(all, /ECONNREFUSED/);
  assert.doesNotMatch(all, /T0KEN|s3cret|b3arer/);
});

async function everyFile(at: string): Promise<string[]> {
  const entries = await readdir(at, { recursive: true, withFileTypes: true });
  return Promise.all(
    entries
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => readFile(join(parentPath, name), "utf8")),
  );
}

test("a state of a newer version refuses to start, a damaged one is set aside (D18, D24)", async () => {
  const state = join(folder, "notice_state.json");
  await writeFile(state, '{"schema":2,"content":{}}');
  await assert.rejects(openNotifier(folder, undefined), /newer Grove/);
  for (const text of ["null", "7", '{"schema":1,"content":{}}']) {
    await writeFile(state, text);
    const { notifier: each } = await open(folder, undefined);
    assert.equal(each.damaged[0]?.file, "notice_state.json", text);
  }
  await writeFile(state, "{");
  const { notifier } = await open(folder, settingsFor([webhookFor(port)]));
  assert.equal(notifier.view().enabled, true);
  const [damaged, ...more] = notifier.damaged;
  assert.deepEqual([damaged?.file, more], ["notice_state.json", []]);
  assert.ok((await readdir(folder)).includes(basename(damaged?.setAsideAs ?? "")));
});

test("without a disk it tells all the same: a full one may be what it is about", async () => {
  const { until, notifier, run } = await open(folder, settingsFor([webhookFor(port)]));
  await run(31, []);
  await rm(folder, { recursive: true });
  await until(() => receiver.calls.length === 1, full);
  await until(() => receiver.calls.length === 2, calm);
  assert.deepEqual(told(), ["firing n1", "resolved n1"]);
  await until(() => notifier.view().counts.delivered === 2, calm);
});

test("the view says what schema it promises, with alerts that wait, are muted or told", async () => {
  const { notifier, clock, run } = await open(folder, settingsFor([webhookFor(port)]));
  const now = Math.trunc(clock.wallMs() / 1_000);
  await notifier.silences.add(
    { matchers: [{ name: "node_id", value: "n2", is_regex: false }], ends_at: now + 3_600, comment: "" },
    "operator:1",
  );
  await run(40, [...full, diskCondition("n2", 99)]);
  const view = noticesReply.parse(notifier.view());
  assert.deepEqual(
    view.alerts.map(({ key, muted_by, told_at }) => [key, muted_by, told_at !== undefined]),
    [
      ["storage_warning:n1", undefined, true],
      ["storage_warning:n2", "silence", false],
    ],
  );
});
