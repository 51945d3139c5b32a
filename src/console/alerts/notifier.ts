// Turns conditions into messages to receivers, with mutes (decision D11). Off until settings name a receiver.
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import type { NoticesReply, NotificationMessage } from "#wire/webapi/notification.ts";
import type { Condition, Moment, Occurrence } from "./condition.ts";
import { JsonStateFile } from "./json-state-file.ts";
import { createMailSender } from "./mail-sender.ts";
import { MAINTENANCE_FILE, MaintenanceStore } from "./maintenance-store.ts";
import { type MaintenanceWindow, MaintenanceWindows, storedWindow } from "./maintenance-windows.ts";
import type { Notice } from "./notification.ts";
import { type FinishedNotification, NotificationDelivery } from "./notification-delivery.ts";
import { NotificationQueue, type QueuedNotification } from "./notification-queue.ts";
import { messagesFor } from "./notification-routing.ts";
import { NotificationService } from "./notification-service.ts";
import type { NotificationSettings, ReceiverSettings } from "./notification-settings.ts";
import { SILENCES_FILE, SilenceStore } from "./silence-store.ts";
import { storedNotifications } from "./tracked-alert.ts";
import { createWebhookSender } from "./webhook-sender.ts";

/** Past messages that GET /api/notices lists. */
const NOTICES_TOLD_LISTED = 200;

/** What the notifier needs. */
export interface NotifierDeps {
  /** The console's data folder, which exists: it holds silences, the queue and the state of sent alerts. */
  readonly dataFolder: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: Random;
  /** Undefined: nothing is sent (spec 6); silences and maintenance windows are kept all the same. */
  readonly settings: NotificationSettings | undefined;
}

/** Names of the file with the state of sent alerts, and of the queue's folder. */
const STATE_FILE = "notice_state.json";
const QUEUE_FOLDER = "notice_queue";
const TICK_MS = 1_000;

const COUNTS = z.object({ delivered: z.int(), refused: z.int(), expired: z.int(), dropped: z.int() });
const STATE_SHAPE = z.object({
  desk: storedNotifications,
  windows: z.array(storedWindow),
  /** Number of this state's newest message. Newer ones in the queue were not delivered and are made again. */
  lastSeq: z.int(),
  counts: COUNTS,
});
type State = z.infer<typeof STATE_SHAPE>;

/** Sends notifications. */
export class Notifier {
  /** Silences by operators. */
  readonly silences: SilenceStore;
  /** Nodes that operators put into maintenance. */
  readonly maintenance: MaintenanceStore;
  /** Files that were damaged at the start, and their new paths: the alert `snapshot_reset` (D24). */
  readonly damaged: readonly { readonly file: string; readonly setAsideAs: string }[];
  readonly #deps: NotifierDeps;
  readonly #file: JsonStateFile<State>;
  readonly #queue: NotificationQueue;
  readonly #windows: MaintenanceWindows;
  readonly #service: NotificationService;
  readonly #deliveries: readonly NotificationDelivery[];
  readonly #counts: z.infer<typeof COUNTS>;
  readonly #stopTicks: () => void;
  #occurrences: Occurrence[] = [];
  #done: NotificationMessage[] = [];
  #isDirty = false;
  /** Messages and states are written one after another, in the order in which they were made. */
  #lastStep: Promise<void> = Promise.resolve();

  private constructor(
    deps: NotifierDeps,
    parts: {
      file: JsonStateFile<State>;
      content: State | undefined;
      queue: NotificationQueue;
      silences: SilenceStore;
      maintenance: MaintenanceStore;
      setAsideAs: string | undefined;
    },
  ) {
    const { clock, log, settings } = deps;
    this.#deps = deps;
    this.#file = parts.file;
    this.#queue = parts.queue;
    this.silences = parts.silences;
    this.maintenance = parts.maintenance;
    this.damaged = [
      { file: SILENCES_FILE, setAsideAs: parts.silences.setAsideAs },
      { file: MAINTENANCE_FILE, setAsideAs: parts.maintenance.setAsideAs },
      { file: STATE_FILE, setAsideAs: parts.setAsideAs },
    ].flatMap(({ file, setAsideAs }) => (setAsideAs === undefined ? [] : [{ file, setAsideAs }]));
    this.#counts = { ...(parts.content?.counts ?? { delivered: 0, refused: 0, expired: 0, dropped: 0 }) };
    this.#windows = new MaintenanceWindows(clock, deps.random);
    // The actions of an earlier run have ended, or are being ended: none of their windows stays open for them.
    this.#windows.restore((parts.content?.windows ?? []).map((window) => ({ ...window, isClosed: true })));
    this.#service = new NotificationService({
      groupBy: settings?.groupBy ?? [],
      groupMs: settings?.groupMs ?? 0,
      repeatMs: settings?.repeatMs ?? 0,
      startedSteadyMs: clock.steadyMs(),
      isSilenced: (labels) => this.silences.isSilenced(labels),
      isMaintained: (type, nodeId) =>
        this.#windows.mutes(type, nodeId) ||
        (nodeId !== undefined && this.maintenance.of(nodeId) !== undefined),
    });
    if (parts.content !== undefined) this.#service.restore(parts.content.desk, this.#now());
    this.#deliveries = (settings?.receivers ?? []).map(
      (receiver) =>
        new NotificationDelivery({
          receiver,
          sender: senderOf(receiver, settings?.consoleUrl ?? ""),
          queue: this.#queue,
          clock,
          log,
          onFinished: (finished) => this.#finished(finished),
        }),
    );
    this.#stopTicks = clock.every(TICK_MS, () => this.#tick());
  }

  /** Restores the state of an earlier run. Throws BAD_ARGUMENT for files of a newer version. */
  static async open(deps: NotifierDeps): Promise<Notifier> {
    const { dataFolder, log } = deps;
    const silences = await SilenceStore.open(deps);
    const maintenance = await MaintenanceStore.open(deps);
    const { file, content, setAsideAs } = await JsonStateFile.open({
      path: join(dataFolder, STATE_FILE),
      shape: STATE_SHAPE,
      clock: deps.clock,
      log,
    });
    const queue = await NotificationQueue.open({ folder: join(dataFolder, QUEUE_FOLDER), log });
    await tidy(queue, deps, content?.lastSeq);
    const notifier = new Notifier(deps, { file, content, queue, silences, maintenance, setAsideAs });
    if (deps.settings !== undefined) {
      // From now on the file decides which messages belong to it.
      await file.save(notifier.#state()).catch((error: unknown) => notifier.#cannotKeep(error));
      notifier.#release();
    }
    return notifier;
  }

  /** Takes an evaluation's conditions, once per round. */
  observe(conditions: readonly Condition[], at: Moment): void {
    for (const { type, nodeId, level } of conditions) {
      if (type === "node_offline" && nodeId !== undefined) this.#windows.sawNode(nodeId, level === "clear");
    }
    const occurrences = this.#occurrences;
    this.#occurrences = [];
    if (occurrences.length > 0) this.#isDirty = true;
    if (this.#deps.settings !== undefined) this.#service.observe(conditions, occurrences, at);
  }

  /** Takes the events since the last evaluation; called before observe. */
  occurred(occurrences: readonly Occurrence[]): void {
    if (this.#deps.settings !== undefined) this.#occurrences.push(...occurrences);
  }

  /** Records that an operator acknowledged or resolved this alert, which ends its repeats. */
  acked(key: string): void {
    if (this.#service.acked(key)) this.#isDirty = true;
  }

  /** Ends the alert of a key that is no longer evaluated; isGone where its subject has left the cluster. */
  forget(key: string, isGone = false): void {
    this.#service.forget(key, this.#now(), isGone);
  }

  /** The nodes that open alerts are about. */
  nodeIds(): ReadonlySet<string> {
    return this.#service.nodeIds();
  }

  /** Ends all alerts of a node that is gone. */
  forgetNode(nodeId: string): void {
    this.#service.forgetNode(nodeId, this.#now());
  }

  /** Mutes what an action on these nodes causes; returns the window's id. */
  openMaintenance(window: MaintenanceWindow): string {
    this.#isDirty = true;
    return this.#windows.open(window);
  }

  /** Ends the action: the window continues until its nodes have answered for 60 s, at most until its end. */
  closeMaintenance(id: string): void {
    this.#isDirty = true;
    this.#windows.close(id);
  }

  /** Latest end of a node's maintenance in wall milliseconds; undefined without one. */
  maintenanceUntil(nodeId: string): number | undefined {
    const wanted = this.maintenance.of(nodeId);
    const ofActions = this.#windows.until(nodeId);
    return wanted === undefined ? ofActions : Math.max(ofActions ?? 0, wanted.ends_at * 1_000);
  }

  /** The state for operators (GET /api/notices). */
  view(): NoticesReply {
    const seconds = (ms: number): number => Math.trunc(ms / 1_000);
    const tries = (seq: number): number => Math.max(0, ...this.#deliveries.map((each) => each.triesOf(seq)));
    return {
      enabled: this.#deps.settings !== undefined,
      receivers: this.#deliveries.map((delivery) => delivery.view()),
      alerts: this.#service.alerts(this.#now()).map(({ tracked, level, toldAtMs, mutedBy }) => ({
        key: tracked.key,
        type: tracked.type,
        severity: level,
        since: seconds(tracked.startsAtMs),
        ...(tracked.subject.nodeId === undefined ? {} : { node_id: tracked.subject.nodeId }),
        ...(tracked.subject.username === undefined ? {} : { username: tracked.subject.username }),
        ...(toldAtMs === undefined ? {} : { told_at: seconds(toldAtMs) }),
        ...(mutedBy === undefined ? {} : { muted_by: mutedBy }),
        acked: tracked.isAcked,
      })),
      waiting: this.#queue.waiting().map((queued) => messageOf(queued, "waiting", tries(queued.seq))),
      done: this.#done.toReversed(),
      counts: { ...this.#counts, unwatched: this.#service.unwatched },
      maintenance: [
        ...this.maintenance.list().map(({ node_id: id, ends_at: until, comment }) => ({
          id: `node:${id}`,
          node_ids: [id],
          until,
          reason: comment === "" ? "put into maintenance by an operator" : comment,
        })),
        ...this.#windows.kept().map(({ id, nodeIds, untilWallMs, reason }) => ({
          id,
          node_ids: nodeIds,
          until: seconds(untilWallMs),
          reason,
        })),
      ],
    };
  }

  /** Ends all delivery; queued messages stay on disk. */
  async close(): Promise<void> {
    this.#stopTicks();
    await Promise.all(this.#deliveries.map((delivery) => delivery.close()));
    if (this.#isDirty) this.#keep([]);
    await this.#lastStep;
  }

  #tick(): void {
    const notices = this.#deps.settings === undefined ? [] : this.#service.tick(this.#now());
    if (notices.length > 0 || this.#isDirty) this.#keep(notices);
  }

  /** Writes first the messages, then the state that counts them as sent, and only then releases them. */
  #keep(notices: readonly Notice[]): void {
    this.#isDirty = false;
    const state = this.#state();
    const createdWallMs = this.#deps.clock.wallMs();
    this.#lastStep = this.#lastStep.then(async () => {
      const messages = notices.flatMap((notice) => messagesFor(notice, this.#deps.settings));
      const { dropped } = await this.#queue.add(messages.map((each) => ({ ...each, createdWallMs })));
      for (const queued of dropped) this.#finished({ queued, state: "dropped", tries: 0 });
      const saved = { ...state, lastSeq: this.#queue.lastSeq, counts: { ...this.#counts } };
      // Messages are sent even if the disk fails, because they may report that.
      await this.#file.save(saved).catch((error: unknown) => this.#cannotKeep(error));
      this.#release();
    });
  }

  #state(): State {
    return {
      desk: this.#service.kept(this.#now()),
      windows: this.#windows.kept(),
      lastSeq: this.#queue.lastSeq,
      counts: { ...this.#counts },
    };
  }

  #release(): void {
    for (const delivery of this.#deliveries) delivery.release(this.#queue.lastSeq);
  }

  #finished({
    queued,
    state,
    tries,
    missed,
  }: Omit<FinishedNotification, "state"> & { state: FinishedNotification["state"] | "dropped" }): void {
    this.#counts[state]++;
    this.#isDirty = true;
    const finishedAt = Math.trunc(this.#deps.clock.wallMs() / 1_000);
    const message = {
      ...messageOf(queued, state, tries),
      finished_at: finishedAt,
      ...(missed === undefined ? {} : { missed }),
    };
    this.#done = [...this.#done.slice(1 - NOTICES_TOLD_LISTED), message];
    if (state === "dropped") {
      this.#deps.log.error("notice_dropped", { receiver: queued.receiver, notice: queued.seq });
    }
  }

  #cannotKeep(error: unknown): void {
    this.#deps.log.error("notice_state_not_kept", { error: errorText(error) });
  }

  #now(): Moment {
    const { clock } = this.#deps;
    return { wallMs: clock.wallMs(), steadyMs: clock.steadyMs() };
  }
}

/** Removes messages of an unwritten state, and those to removed receivers. */
async function tidy(
  queue: NotificationQueue,
  deps: NotifierDeps,
  lastSeq: number | undefined,
): Promise<void> {
  const names = new Set(deps.settings?.receivers.map(({ name }) => name));
  for (const { seq, receiver } of queue.waiting()) {
    const isUnborn = lastSeq !== undefined && seq > lastSeq;
    // Without any settings the queue waits for their return.
    const isOrphan = deps.settings !== undefined && !names.has(receiver);
    if (!isUnborn && !isOrphan) continue;
    if (isOrphan) deps.log.warn("notice_without_receiver", { receiver, notice: seq });
    await queue.remove(seq);
  }
  queue.countFrom(lastSeq ?? 0);
}

function senderOf(
  receiver: ReceiverSettings,
  consoleUrl: string,
): ReturnType<typeof createWebhookSender | typeof createMailSender> {
  return receiver.kind === "webhook"
    ? createWebhookSender(receiver, consoleUrl)
    : createMailSender(receiver, consoleUrl);
}

function messageOf(
  queued: QueuedNotification,
  state: NotificationMessage["state"],
  tries: number,
): NotificationMessage {
  const { seq, receiver, createdWallMs, notice } = queued;
  return {
    id: `${createdWallMs}-${seq}`,
    receiver,
    status: notice.status,
    created_at: Math.trunc(createdWallMs / 1_000),
    state,
    tries,
    group: notice.group,
    alerts: notice.alerts.map(({ key, status, reason }) => ({ key, status, reason })),
  };
}
