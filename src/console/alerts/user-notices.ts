// Tells users of their own quota, trash and sign-ins, by mail or webhook. Off until settings name a receiver.
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { toJson64 } from "#base/json64.ts";
import { errorText, type Logger } from "#base/log.ts";
import { networkOf } from "#base/network.ts";
import type { UserState } from "#base/user-state.ts";
import { type GroupBook, groupNameOf, rolesOfGroups } from "#security/policy/group.ts";
import type { NotificationReceiver } from "#wire/webapi/notification.ts";
import { JsonStateFile } from "./json-state-file.ts";
import { mailSenderOf } from "./mail-sender.ts";
import { NotificationDelivery } from "./notification-delivery.ts";
import { NotificationQueue } from "./notification-queue.ts";
import { isMailAddress } from "./notification-routing.ts";
import type { ReceiverSettings, UserNoticeSettings } from "./notification-settings.ts";
import type { UserReadings } from "./quota-rule.ts";
import {
  type UserNotice,
  type UserNoticeKind,
  type UserNoticeSubject,
  userNoticeShape,
} from "./user-notice.ts";
import { storedBook, UserNoticeBook } from "./user-notice-book.ts";
import { userMailText, userWebhookPayload } from "./user-notice-texts.ts";
import { webhookSenderOf } from "./webhook-sender.ts";

/** The file of what was told, and the folder of messages that wait, in the console's data folder. */
export const USER_NOTICES_FILE = "user_notices.json";
const QUEUE_FOLDER = "user_notice_queue";
/** Each node's users are looked at this often. */
const LOOK_INTERVAL_MS = 30_000;
/** Time between tries to ask the metadata store who wants notices. */
const SETTLE_INTERVAL_MS = 10_000;
/** News that wait for the store; beyond, the oldest are dropped. */
const NEWS_MAX = 10_000;
/** A sign-in is told within this time; older lines come from logs that are read again. */
const SIGN_IN_FRESH_MS: number = 3_600_000;
/** How long a sign-in waits for the store's word that its user has a root. */
const HOME_WAIT_MS = 150_000;
/** Below this share of a quota, and without earlier notices, nobody is looked at closely. */
const FAR_SHARE = 0.79;
/** Nodes whose last look is remembered. */
const LOOKS_MAX = 4_000;

/** A node's data about its users. */
export interface NoticeReadings extends UserReadings {
  readonly perUserDetail: ReadonlyMap<
    string,
    { readonly trashBytes: bigint | null; readonly trashExpiresUnix: number | null }
  >;
}

/** What the notices need. */
export interface UserNoticesDeps {
  /** The console's data folder, which exists. */
  readonly dataFolder: string;
  /** Undefined: users are told nothing. */
  readonly settings: UserNoticeSettings | undefined;
  /** Node of a user's root by the metadata store; undefined when unknown. */
  readonly homeOf: (owner: string) => string | undefined;
  readonly store: {
    noticesOff(username: string): Promise<boolean>;
    userStates(): Promise<readonly UserState[]>;
    groupBook(): Promise<GroupBook>;
  };
  readonly clock: Clock;
  readonly log: Logger;
}

/** Something to be told to the owner of a root. */
type News = Omit<UserNotice, "group" | "username"> & { readonly owner: string };

/** A sign-in, with the place by which it is recognised. */
type SignIn = Pick<News, "address" | "atMs" | "device" | "owner"> & { readonly place: string };

/** The notices. */
export class UserNotices {
  /** The new path of a file that was damaged at the start (D24). */
  readonly setAsideAs: string | undefined;
  readonly #deps: UserNoticesDeps;
  readonly #file: JsonStateFile<ReturnType<UserNoticeBook["kept"]>>;
  readonly #queue: NotificationQueue<UserNotice>;
  readonly #book: UserNoticeBook;
  readonly #deliveries: readonly NotificationDelivery<UserNotice>[];
  readonly #stopTicks: () => void;
  readonly #lookedMs = new Map<string, number>();
  #news: News[] = [];
  /** Sign-ins of users whose roots the console has not read of yet. */
  #signIns: (SignIn & { readonly heardMs: number })[] = [];
  #settling: Promise<void> | undefined;
  #isDirty = false;

  private constructor(
    deps: UserNoticesDeps,
    settings: UserNoticeSettings,
    parts: {
      file: JsonStateFile<ReturnType<UserNoticeBook["kept"]>>;
      book: UserNoticeBook;
      queue: NotificationQueue<UserNotice>;
      setAsideAs: string | undefined;
    },
  ) {
    const { clock, log } = deps;
    this.#deps = deps;
    this.#file = parts.file;
    this.#book = parts.book;
    this.#queue = parts.queue;
    this.setAsideAs = parts.setAsideAs;
    this.#deliveries = settings.receivers.map(
      (receiver) =>
        new NotificationDelivery({
          receiver,
          sender: senderOf(receiver, settings.pageUrl),
          queue: parts.queue,
          clock,
          log,
          onFinished: ({ queued, state }) => {
            log.info("user_notice", { user: queued.notice.username, kind: queued.notice.kind, state });
          },
        }),
    );
    this.#stopTicks = clock.every(SETTLE_INTERVAL_MS, () => this.#tick());
    this.#release();
  }

  /**
   * Restores what was told, and what waits; undefined where nothing is to be told. Throws BAD_ARGUMENT for
   * files of a newer version.
   */
  static async open(deps: UserNoticesDeps): Promise<UserNotices | undefined> {
    const { dataFolder, settings, clock, log } = deps;
    if (settings === undefined) return undefined;
    const path = join(dataFolder, USER_NOTICES_FILE);
    const { file, content, setAsideAs } = await JsonStateFile.open({ path, shape: storedBook, clock, log });
    const folder = join(dataFolder, QUEUE_FOLDER);
    const queue = await NotificationQueue.openOf({ folder, log }, userNoticeShape);
    const names = new Set(settings.receivers.map(({ name }) => name));
    for (const { seq, receiver } of queue.waiting()) if (!names.has(receiver)) await queue.remove(seq);
    return new UserNotices(deps, settings, { file, book: new UserNoticeBook(content), queue, setAsideAs });
  }

  /** Looks at a node's users twice a minute. A user is judged by the home node alone (M-05). */
  polled(nodeId: string, readings: NoticeReadings): void {
    const nowMs = this.#deps.clock.steadyMs();
    if (
      readings.usersWithheld ||
      nowMs - (this.#lookedMs.get(nodeId) ?? -LOOK_INTERVAL_MS) < LOOK_INTERVAL_MS
    )
      return;
    if (this.#lookedMs.size >= LOOKS_MAX) this.#lookedMs.clear();
    this.#lookedMs.set(nodeId, nowMs);
    const { perUserStorage, perUserQuota, perUserDetail, nearQuota } = readings;
    // Not entry by entry: each would be an object, and few users are near.
    perUserStorage.forEach((used, owner) =>
      this.#usage(nodeId, owner, used, perUserQuota.get(owner), readings),
    );
    nearQuota?.storage.forEach((used, owner) => {
      if (!perUserStorage.has(owner)) this.#usage(nodeId, owner, used, nearQuota.limit.get(owner), readings);
    });
    perUserDetail.forEach(({ trashBytes, trashExpiresUnix }, owner) => {
      if (trashExpiresUnix === null) return;
      const expiresMs = trashExpiresUnix * 1_000;
      const wallMs = this.#deps.clock.wallMs();
      if (!this.#isWanted("trash") || !this.#isHome(nodeId, owner)) return;
      if (!this.#book.trash(owner, expiresMs, wallMs)) return;
      const held = trashBytes === null ? {} : { trashBytes: toJson64(trashBytes) };
      this.#note({ kind: "trash", owner, atMs: wallMs, expiresMs: Math.max(expiresMs, wallMs), ...held });
    });
    this.#settle();
  }

  /** Takes a node's audit lines, of which those count that tell of sign-ins of the last hour. */
  heard(lines: readonly string[]): void {
    if (!this.#isWanted("sign_in")) return;
    const { clock } = this.#deps;
    for (const line of lines) {
      const found = signInOf(line);
      if (found === undefined || Math.abs(clock.wallMs() - found.atMs) > SIGN_IN_FRESH_MS) continue;
      this.#signIns.push({ ...found, heardMs: clock.steadyMs() });
      if (this.#signIns.length > NEWS_MAX) this.#signIns.shift();
    }
    this.#tick();
  }

  /** State of each receiver, for operators. */
  receivers(): NotificationReceiver[] {
    return this.#deliveries.map((delivery) => {
      const view = delivery.view();
      return { ...view, name: `${view.name} (users)` };
    });
  }

  /** Ends all delivery; queued messages stay on disk, and what was told is written. */
  async close(): Promise<void> {
    this.#stopTicks();
    await Promise.all(this.#deliveries.map((delivery) => delivery.close()));
    await this.#settling;
    // What nobody was told yet is not kept as told.
    if (this.#isDirty && this.#news.length === 0) await this.#save();
  }

  #tick(): void {
    const { clock, homeOf } = this.#deps;
    const heard = this.#signIns;
    this.#signIns = [];
    for (const signIn of heard) {
      const { owner, place, heardMs, ...facts } = signIn;
      // Only users of the cluster are told, whatever a node writes into its log.
      if (homeOf(owner) === undefined) {
        if (clock.steadyMs() - heardMs < HOME_WAIT_MS) this.#signIns.push(signIn);
        continue;
      }
      this.#isDirty = true;
      if (this.#book.signIn(owner, place, clock.wallMs())) this.#note({ kind: "sign_in", owner, ...facts });
    }
    this.#settle();
  }

  #usage(
    nodeId: string,
    owner: string,
    usedBytes: bigint,
    quotaBytes: bigint | undefined,
    { perUserDetail }: NoticeReadings,
  ): void {
    if (quotaBytes === undefined || !this.#isWanted("quota")) return;
    const isFar = Number(usedBytes) < Number(quotaBytes) * FAR_SHARE;
    if ((isFar && !this.#book.knows(owner)) || !this.#isHome(nodeId, owner)) return;
    const wallMs = this.#deps.clock.wallMs();
    const kind: UserNoticeKind | undefined = this.#book.quota(owner, usedBytes, quotaBytes, wallMs);
    if (kind === undefined) return;
    const trashBytes = perUserDetail.get(owner)?.trashBytes ?? null;
    this.#note({
      kind,
      owner,
      atMs: wallMs,
      usedBytes: toJson64(usedBytes),
      quotaBytes: toJson64(quotaBytes),
      ...(trashBytes === null ? {} : { trashBytes: toJson64(trashBytes) }),
    });
  }

  /** True for the node that the store names. While it names none, the next poll looks again. */
  #isHome(nodeId: string, owner: string): boolean {
    const home = this.#deps.homeOf(owner);
    if (home === undefined) this.#lookedMs.delete(nodeId);
    return home === nodeId;
  }

  #isWanted(subject: UserNoticeSubject): boolean {
    return this.#deps.settings?.about.includes(subject) ?? false;
  }

  #note(news: News): void {
    this.#isDirty = true;
    this.#news.push(news);
    if (this.#news.length > NEWS_MAX) this.#news.shift();
  }

  #settle(): void {
    if (this.#news.length === 0 || this.#settling !== undefined) return;
    this.#settling = this.#tell()
      .catch((error: unknown) => {
        this.#deps.log.warn("user_notices_wait", { waiting: this.#news.length, error: errorText(error) });
      })
      .finally(() => {
        this.#settling = undefined;
      });
  }

  /** Writes what is told before the messages: after a crash nobody is told twice. */
  async #tell(): Promise<void> {
    // A copy: what is noted while the store is asked belongs to the next one.
    const batch = [...this.#news];
    const notices = await this.#noticesOf(batch);
    this.#news = this.#news.slice(batch.length);
    await this.#save();
    const receivers = this.#deps.settings?.receivers ?? [];
    const createdWallMs = this.#deps.clock.wallMs();
    const messages = notices.flatMap((notice) =>
      receivers
        .filter(({ kind }) => kind === "webhook" || isMailAddress(notice.username))
        .map(({ name, kind }) => ({
          receiver: name,
          ...(kind === "email" ? { to: notice.username } : {}),
          createdWallMs,
          notice,
        })),
    );
    const { dropped } = await this.#queue.add(messages);
    if (dropped.length > 0) this.#deps.log.error("user_notices_dropped", { count: dropped.length });
    this.#release();
  }

  /** One notice for each person who is to be told, and wants to be. Throws what the store throws. */
  async #noticesOf(batch: readonly News[]): Promise<UserNotice[]> {
    const { store, clock } = this.#deps;
    const states = await store.userStates();
    const gone = new Set(states.flatMap((state) => (state.disabled ? state.username : [])));
    const hasGroups = batch.some(({ owner }) => groupNameOf(owner) !== undefined);
    const managers = hasGroups ? managersOf(await store.groupBook(), clock.wallMs()) : undefined;
    const notices: UserNotice[] = [];
    for (const { owner, ...facts } of batch) {
      const group = groupNameOf(owner);
      for (const username of group === undefined ? [owner] : (managers?.get(group) ?? [])) {
        if (gone.has(username) || (await store.noticesOff(username))) continue;
        notices.push({ ...facts, username, ...(group === undefined ? {} : { group }) });
      }
    }
    return notices;
  }

  async #save(): Promise<void> {
    this.#isDirty = false;
    // Users are told even if the disk fails, at the cost of being told again.
    await this.#file.save(this.#book.kept()).catch((error: unknown) => {
      this.#deps.log.error("user_notices_not_kept", { error: errorText(error) });
    });
  }

  #release(): void {
    for (const delivery of this.#deliveries) delivery.release(this.#queue.lastSeq);
  }
}

/** The members who manage each group now. */
function managersOf(book: GroupBook, wallMs: number): ReadonlyMap<string, readonly string[]> {
  return new Map(
    rolesOfGroups(book, { withClaims: true }).map(({ name, roles }) => [
      name,
      [
        ...new Set(
          roles
            .filter(({ role, untilMs }) => role === "manage" && (untilMs === 0 || untilMs > wallMs))
            .map(({ username }) => username),
        ),
      ],
    ]),
  );
}

function senderOf(
  receiver: ReceiverSettings,
  pageUrl: string | undefined,
): ReturnType<typeof mailSenderOf<UserNotice>> {
  return receiver.kind === "webhook"
    ? webhookSenderOf(receiver, (notice: UserNotice) => userWebhookPayload(notice, receiver.name, pageUrl))
    : mailSenderOf(receiver, (notice: UserNotice) => userMailText(notice, pageUrl));
}

/** The sign-in that an audit line tells of. */
function signInOf(text: string): SignIn | undefined {
  if (!text.includes('"session.open"')) return undefined;
  const line = JSON.parse(text) as Readonly<Partial<{ [field: string]: unknown }>>;
  const { act, actor, subject, time } = line;
  const atMs = Date.parse(String(time));
  if (act !== "session.open" || typeof subject !== "string" || actor !== subject || Number.isNaN(atMs))
    return undefined;
  const detail = (line["detail"] ?? {}) as Readonly<Partial<{ [field: string]: unknown }>>;
  const part = (name: string): string => (typeof detail[name] === "string" ? detail[name] : "");
  const [address, credential] = [part("address"), part("credential")];
  // A browser has a new credential with every sign-in, and an app password keeps its own.
  const isBrowser = credential.startsWith("browser:");
  const device = part("door") === "" ? part("device") : isBrowser ? "a browser" : "an app password";
  const by = credential === "" || isBrowser ? device : credential;
  return {
    owner: subject,
    place: `${by}\n${address === "" ? "" : networkOf(address)}`,
    atMs,
    ...(address === "" ? {} : { address }),
    ...(device === "" ? {} : { device }),
  };
}
