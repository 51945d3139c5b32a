// Notices to users through a real SMTP server and a real webhook: to whom, once a day, over restarts, and the switch.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ManualClock } from "#base/clock.ts";
import { DAY_MS } from "#base/duration.ts";
import { silentLogger } from "#base/log.ts";
import type { UserState } from "#base/user-state.ts";
import type { GroupBook } from "#security/policy/group.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import type { EmailSettings, UserNoticeSettings } from "./notification-settings.ts";
import { webhookFor } from "./notifier.fixture.ts";
import { MailServer, WebhookReceiver } from "./receivers.fixture.ts";
import { type NoticeReadings, UserNotices } from "./user-notices.ts";

const WALL_MS = 1_790_000_000_000;
const ANN = "ann@example.net";
const BOB = "bob@example.net";

let mails: MailServer;
let hook: WebhookReceiver;
let settings: UserNoticeSettings;
let folder: string;
let clock: ManualClock;
let notices: UserNotices | undefined;
let off: Set<string>;
let states: UserState[];
let isStoreDown: boolean;
let groupBook: GroupBook;
/** What happens while the store is asked about a user. */
let onAsked: () => void;
const homes = new Map([ANN, BOB, "lab@group"].map((owner) => [owner, "n1"]));

before(async () => {
  mails = new MailServer();
  hook = new WebhookReceiver();
  const mail: EmailSettings = {
    kind: "email",
    name: "mail",
    minSeverity: "none",
    to: ["ops@example.net"],
    from: "grove@example.net",
    host: "127.0.0.1",
    port: await mails.listen(),
    security: "none",
    username: undefined,
    password: undefined,
    ca: undefined,
  };
  const about = ["quota", "trash", "sign_in"] as const;
  const receivers = [mail, webhookFor(await hook.listen(), { name: "hook" })];
  settings = { receivers, about, pageUrl: "https://files.example.net/" };
});
after(async () => {
  await mails.close();
  await hook.close();
});
beforeEach(async () => {
  folder = scratchFolder("grove-user-notices-");
  clock = new ManualClock(WALL_MS);
  [off, states, isStoreDown] = [new Set(), [], false];
  groupBook = { mark: "1", groups: [], people: [] };
  onAsked = () => undefined;
  mails.mails.length = 0;
  hook.calls.length = 0;
  await reopen();
});
afterEach(() => notices?.close());

async function reopen(chosen: UserNoticeSettings = settings): Promise<void> {
  await notices?.close();
  const answer = <T>(value: () => T): Promise<T> =>
    isStoreDown ? Promise.reject(new Error("the store is away")) : Promise.resolve(value());
  notices = await UserNotices.open({
    dataFolder: folder,
    settings: chosen,
    homeOf: (owner) => homes.get(owner),
    store: {
      noticesOff: (username) => {
        onAsked();
        return answer(() => off.has(username));
      },
      userStates: () => answer(() => states),
      groupBook: () => answer(() => groupBook),
    },
    clock,
    log: silentLogger,
  });
}

/** A node's users with a quota of 1,000 bytes. */
function usage(used: Readonly<Record<string, number>>, expiresMs?: number): NoticeReadings {
  const users = Object.entries(used);
  const trashExpiresUnix = expiresMs === undefined ? null : expiresMs / 1_000;
  return {
    perUserStorage: new Map(users.map(([owner, bytes]) => [owner, BigInt(bytes)])),
    perUserQuota: new Map(users.map(([owner]) => [owner, 1_000n])),
    perUserDetail: new Map(users.map(([owner]) => [owner, { trashBytes: 100n, trashExpiresUnix }])),
    nearQuota: null,
    usersTruncated: false,
    usersWithheld: false,
  };
}

function signIn(username: string, more: { actor?: string; device?: string; atMs?: number } = {}): string {
  const { actor = username, device = "laptop", atMs = clock.wallMs() } = more;
  const detail = { session: "5ec4e7", address: "192.0.2.1", device };
  return JSON.stringify({
    seq: 1,
    time: new Date(atMs).toISOString(),
    actor,
    act: "session.open",
    subject: username,
    detail,
    prev: "0",
  });
}

function poll(used: Readonly<Record<string, number>>, expiresMs?: number, node = "n1"): void {
  clock.advance(60_000);
  notices?.polled(node, usage(used, expiresMs));
}

async function until(holds: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 10_000;
  while (!holds()) {
    assert.ok(performance.now() < deadlineMs, "it never came");
    clock.advance(1_000);
    await sleep(2);
  }
}

/** Who was told what, once a last notice about somebody else has arrived: so nothing else is under way. */
async function told(): Promise<string[]> {
  const marker = `marker${mails.mails.length}@example.net`;
  homes.set(marker, "n1");
  notices?.heard([signIn(marker)]);
  const isMarker = (text: string): boolean => text.includes(marker);
  await until(
    () => mails.mails.some(({ to }) => to.some(isMarker)) && hook.calls.some(({ body }) => isMarker(body)),
  );
  const byMail = mails.mails
    .filter(({ to }) => !to.some((address) => address.startsWith("marker")))
    .map(({ to, data }) => `${to.join()}: ${/^Subject: (.*)$/m.exec(data)?.[1]?.trim() ?? ""}`);
  const byHook = hook.calls.flatMap(({ payload }) =>
    payload.alerts.filter(({ labels }) => labels["username"]?.startsWith("marker") === false),
  );
  assert.equal(byHook.length, byMail.length);
  return byMail;
}

test("80 % is told to its user by mail and webhook once a day, and a byte below it is not", async () => {
  poll({ [ANN]: 800, [BOB]: 799 });
  assert.deepEqual(await told(), [`${ANN}: [grove] 80 % of your storage is used`]);
  poll({ [ANN]: 1_000, [BOB]: 799 });
  poll({ [ANN]: 1_000, [BOB]: 799 });
  assert.deepEqual((await told()).slice(1), [`${ANN}: [grove] Your storage is full`]);
  const [mail] = mails.mails.filter(({ to }) => to.includes(ANN));
  assert.match(mail?.data ?? "", /^From: grove@example\.net/m);
  assert.match(mail?.data ?? "", /grove trash empty/);
});

test("a restart tells nobody again, and what waited is delivered after it", async () => {
  poll({ [ANN]: 950 });
  assert.equal((await told()).length, 1);
  await reopen();
  poll({ [ANN]: 950 });
  assert.equal((await told()).length, 1);
  mails.answers = { MAIL: "451 later" };
  hook.answer = () => 503;
  poll({ [ANN]: 1_000 });
  await until(() => hook.calls.length > 2);
  await notices?.close();
  notices = undefined;
  mails.answers = {};
  hook.answer = () => 200;
  hook.calls.length = 0;
  await reopen();
  await until(() => mails.mails.some(({ data }) => data.includes("is full")));
  await until(() => hook.calls.some(({ body }) => body.includes("is full")));
});

test("old trash is told before it is deleted", async () => {
  poll({ [ANN]: 300 }, WALL_MS + 8 * DAY_MS);
  assert.deepEqual(await told(), []);
  poll({ [ANN]: 300 }, WALL_MS + 7 * DAY_MS);
  assert.deepEqual(await told(), [`${ANN}: [grove] Your trash will lose its oldest items soon`]);
});

test("a sign-in from a new place is told, from a known one not, nor one that a node makes up or tells late", async () => {
  notices?.heard([signIn(ANN), signIn(ANN), signIn("nobody@example.net"), signIn(BOB, { actor: ANN })]);
  notices?.heard([signIn(BOB, { atMs: clock.wallMs() - 3_600_001 }), "no line"]);
  assert.deepEqual(await told(), [`${ANN}: [grove] A sign-in from a new place`]);
  assert.doesNotMatch(mails.mails.map(({ data }) => data).join(), /5ec4e7/);
  notices?.heard([signIn(BOB, { atMs: clock.wallMs() - 3_600_000 })]);
  assert.equal((await told()).length, 2);
});

test("a sign-in waits for the store's word that its user has a root, two and a half minutes at most", async () => {
  const [early, late] = ["early@example.net", "late@example.net"];
  notices?.heard([signIn(early), signIn(late)]);
  clock.advance(140_000);
  homes.set(early, "n1");
  assert.deepEqual(await told(), [`${early}: [grove] A sign-in from a new place`]);
  clock.advance(20_000);
  homes.set(late, "n1");
  assert.equal((await told()).length, 1);
});

test("who has turned notices off, or is locked, is told nothing; on again tells what comes then", async () => {
  off.add(ANN);
  states = [{ username: BOB, disabled: true } as UserState];
  poll({ [ANN]: 800, [BOB]: 800 });
  notices?.heard([signIn(ANN), signIn(BOB)]);
  assert.deepEqual(await told(), []);
  off.clear();
  poll({ [ANN]: 950 });
  assert.deepEqual(await told(), [`${ANN}: [grove] 95 % of your storage is used`]);
});

function withGroup(): void {
  const made = { setBy: "root@example.net", setAtMs: 1 };
  const members = [
    { username: ANN, role: "manage" as const, ...made },
    { username: BOB, role: "write" as const, ...made },
  ];
  groupBook = {
    mark: "2",
    groups: [{ name: "lab", createdBy: "root@example.net", createdMs: 1, members, claims: [] }],
    people: [],
  };
}

test("a group's root tells the members who manage it, and nobody at the group's own name", async () => {
  withGroup();
  poll({ "lab@group": 1_000 });
  assert.deepEqual(await told(), [`${ANN}: [grove] The storage of the group lab is full`]);
});

test("a group's root that fills while others are told is told of next", async () => {
  withGroup();
  homes.set("lab@group", "n2");
  onAsked = () => {
    onAsked = () => undefined;
    notices?.polled("n2", usage({ "lab@group": 1_000 }));
  };
  poll({ [BOB]: 1_000 });
  await until(() => mails.mails.some(({ to }) => to.includes(ANN)));
  const all = await told();
  homes.set("lab@group", "n1");
  assert.deepEqual(all.toSorted(), [
    `${ANN}: [grove] The storage of the group lab is full`,
    `${BOB}: [grove] Your storage is full`,
  ]);
});

test("only the home node speaks for a user", async () => {
  poll({ [ANN]: 1_000 }, undefined, "n2");
  assert.deepEqual(await told(), []);
  poll({ [ANN]: 1_000 });
  assert.equal((await told()).length, 1);
});

test("while the metadata store is away nobody is told, and afterwards everybody is", async () => {
  isStoreDown = true;
  poll({ [ANN]: 1_000 });
  notices?.heard([signIn(BOB)]);
  for (let second = 0; second < 30; second++) {
    clock.advance(1_000);
    await sleep(1);
  }
  assert.equal(mails.mails.length, 0);
  isStoreDown = false;
  assert.deepEqual((await told()).toSorted(), [
    `${ANN}: [grove] Your storage is full`,
    `${BOB}: [grove] A sign-in from a new place`,
  ]);
});

test("subjects that the settings leave out are not told, and without settings nothing is", async () => {
  await reopen({ ...settings, about: ["sign_in"] });
  poll({ [ANN]: 1_000 }, WALL_MS);
  assert.deepEqual(await told(), []);
  const deps = { dataFolder: folder, settings: undefined, clock, log: silentLogger };
  const store = { noticesOff: never, userStates: never, groupBook: never };
  assert.equal(await UserNotices.open({ ...deps, store, homeOf: () => "n1" }), undefined);
});

function never(): never {
  throw new Error("nobody asks");
}
