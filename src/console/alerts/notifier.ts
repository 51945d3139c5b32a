// What is told to whom and when: conditions in, messages out, and what mutes them (decision D11). Off until settings name a receiver.
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
import { keptWindow, type MaintenanceWindow, MaintenanceWindows } from "./maintenance-windows.ts";
import type { Notice } from "./notification.ts";
import { type FinishedNotification, NotificationDelivery } from "./notification-delivery.ts";
import { NotificationQueue, type QueuedNotification } from "./notification-queue.ts";
import { messagesFor } from "./notification-routing.ts";
import { NotificationService } from "./notification-service.ts";
import type { NotificationSettings, ReceiverSettings } from "./notification-settings.ts";
import { SILENCES_FILE, SilenceStore } from "./silence-store.ts";
import { keptService } from "./tracked-alert.ts";
import { createWebhookSender } from "./webhook-sender.ts";

/** Notices: messages of the past that GET /api/notices lists. */
const NOTICES_TOLD_LISTED = 200;

/** What the notifier is opened with. */
export interface NotifierDeps {
  /** The console's data folder, which is there: silences, what has been told and what waits lie in it. */
  readonly dataFolder: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: Random;
  /** Undefined: nothing is told (spec 6); silences and maintenance windows are kept all the same. */
  readonly settings: NotificationSettings | undefined;
}

/** Name of the file that remembers what has been told, and of the folder of what waits. */
const STATE_FILE = "notice_state.json";
const QUEUE_FOLDER = "notice_queue";
const TICK_MS = 1_000;

const COUNTS = z.object({ delivered: z.int(), refused: z.int(), expired: z.int(), dropped: z.int() });
const STATE_SHAPE = z.object({
  desk: keptService,
  windows: z.array(keptWindow),
  /** Number of the newest message that belongs to this state; newer ones in the queue never left and are made again. */
  lastSeq: z.int(),
  counts: COUNTS,
});
type State = z.infer<typeof STATE_SHAPE>;

/** The notification layer. */
export class Notifier {
  /** What operators do not want to be told. */
  readonly silences: SilenceStore;
  /** Nodes of which they do not want to be told anything. */
  readonly maintenance: MaintenanceStore;
  /** Files that were damaged at the start, and where they were put: the alert `snapshot_reset` (D24). */
  readonly damaged: readonly { readonly file: string; readonly setAsideAs: string }[];
  readonly #deps: NotifierDeps;
  readonly #file: JsonStateFile<State>;
  readonly #queue: NotificationQueue;
  readonly #windows: MaintenanceWindows;
  readonly #desk: NotificationService;
  readonly #deliveries: readonly NotificationDelivery[];
  readonly #counts: z.infer<typeof COUNTS>;
  readonly #stopTicks: () => void;
  #occurrences: Occurrence[] = [];
  #done: NotificationMessage[] = [];
  #isDirty = false;
  /** Messages and states go to disk one after another, in the order in which they were made. */
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
    this.#windows.restore(parts.content?.windows ?? []);
    this.#desk = new NotificationService({
      groupBy: settings?.groupBy ?? [],
      groupMs: settings?.groupMs ?? 0,
      repeatMs: settings?.repeatMs ?? 0,
      startedSteadyMs: clock.steadyMs(),
      isSilenced: (labels) => this.silences.isSilenced(labels),
      isMaintained: (type, nodeId) =>
        this.#windows.mutes(type, nodeId) ||
        (nodeId !== undefined && this.maintenance.of(nodeId) !== undefined),
    });
    if (parts.content !== undefined) this.#desk.restore(parts.content.desk, this.#now());
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

  /** Reads what an earlier run has left, and goes on with it. Throws BAD_ARGUMENT for files of a newer version. */
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
      // From now on the file says which messages belong to it.
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
    if (this.#deps.settings !== undefined) this.#desk.observe(conditions, occurrences, at);
  }

  /** Takes what has happened since the last evaluation; call it before observe. */
  occurred(occurrences: readonly Occurrence[]): void {
    if (this.#deps.settings !== undefined) this.#occurrences.push(...occurrences);
  }

  /** An operator has seen this alert, or resolved it by hand: it is not repeated until it becomes worse or comes back. */
  acked(key: string): void {
    if (this.#desk.acked(key)) this.#isDirty = true;
  }

  /** What a key was about is gone, such as a node that was removed: its alert is over. */
  forget(key: string): void {
    this.#desk.forget(key, this.#now());
  }

  /** Mutes what an action on these nodes causes; answers the window's id. */
  openMaintenance(window: MaintenanceWindow): string {
    this.#isDirty = true;
    return this.#windows.open(window);
  }

  /** The action has ended: the window goes on until its nodes have answered for 60 s, at most until its end. */
  closeMaintenance(id: string): void {
    this.#isDirty = true;
    this.#windows.close(id);
  }

  /** Until when a node is under maintenance at most, in wall milliseconds; undefined when it is not. */
  maintenanceUntil(nodeId: string): number | undefined {
    const wanted = this.maintenance.of(nodeId);
    const ofActions = this.#windows.until(nodeId);
    return wanted === undefined ? ofActions : Math.max(ofActions ?? 0, wanted.ends_at * 1_000);
  }

  /** Everything that operators may want to know of it (GET /api/notices). */
  view(): NoticesReply {
    const seconds = (ms: number): number => Math.trunc(ms / 1_000);
    const tries = (seq: number): number => Math.max(0, ...this.#deliveries.map((each) => each.triesOf(seq)));
    return {
      enabled: this.#deps.settings !== undefined,
      receivers: this.#deliveries.map((delivery) => delivery.view()),
      alerts: this.#desk.alerts(this.#now()).map(({ tracked, level, toldAtMs, mutedBy }) => ({
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
      counts: { ...this.#counts, unwatched: this.#desk.unwatched },
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

  /** Ends all delivery; what waits stays on disk. */
  async close(): Promise<void> {
    this.#stopTicks();
    await Promise.all(this.#deliveries.map((delivery) => delivery.close()));
    if (this.#isDirty) this.#keep([]);
    await this.#lastStep;
  }

  #tick(): void {
    const notices = this.#deps.settings === undefined ? [] : this.#desk.tick(this.#now());
    if (notices.length > 0 || this.#isDirty) this.#keep(notices);
  }

  /** Messages first, then the state in which they are told, and only then may they leave. */
  #keep(notices: readonly Notice[]): void {
    this.#isDirty = false;
    const state = this.#state();
    const createdWallMs = this.#deps.clock.wallMs();
    this.#lastStep = this.#lastStep.then(async () => {
      const messages = notices.flatMap((notice) => messagesFor(notice, this.#deps.settings));
      const { dropped } = await this.#queue.add(messages.map((each) => ({ ...each, createdWallMs })));
      for (const queued of dropped) this.#finished({ queued, state: "dropped", tries: 0 });
      const saved = { ...state, lastSeq: this.#queue.lastSeq, counts: { ...this.#counts } };
      // Without a disk they are told all the same: it may be what they are about.
      await this.#file.save(saved).catch((error: unknown) => this.#cannotKeep(error));
      this.#release();
    });
  }

  #state(): State {
    return {
      desk: this.#desk.kept(this.#now()),
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
  }: FinishedNotification | { queued: QueuedNotification; state: "dropped"; tries: number }): void {
    this.#counts[state]++;
    this.#isDirty = true;
    const finishedAt = Math.trunc(this.#deps.clock.wallMs() / 1_000);
    const message = { ...messageOf(queued, state, tries), finished_at: finishedAt };
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

/** Takes out what never belonged to a written state, and what nobody receives any more. */
async function tidy(
  queue: NotificationQueue,
  deps: NotifierDeps,
  lastSeq: number | undefined,
): Promise<void> {
  const names = new Set(deps.settings?.receivers.map(({ name }) => name));
  for (const { seq, receiver } of queue.waiting()) {
    const isUnborn = lastSeq !== undefined && seq > lastSeq;
    // With no settings at all the queue waits for them to come back.
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
