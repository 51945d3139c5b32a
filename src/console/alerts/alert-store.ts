// Saves alerts, and shows and publishes them once they are on stable storage (spec 2.6, A-10).
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { Alert } from "./alert.ts";
import { AlertsFile, type LoadedAlerts } from "./alert-file.ts";
import { type AlertEvent, AlertStateMachine } from "./alert-state-machine.ts";
import type { Moment } from "./condition.ts";

/** Writes of the file without delay; further ones are spaced, to spare SD cards from flapping alerts. */
const ALERT_WRITES_AT_ONCE = 10;
/** Distance between further writes. */
const ALERT_WRITE_INTERVAL_MS = 1_000;

/** What the store needs. */
export interface AlertStoreOptions {
  /** The console's data folder, which exists. */
  readonly folder: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Receives the change of an alert; must not throw. */
export type AlertListener = (event: AlertEvent) => void;

/** Keeps the alerts. */
export class AlertStore {
  readonly machine: AlertStateMachine;
  /** Last security event of each node that was counted; saved with the next change, or by saveMarks. */
  readonly securityMarks: Map<string, string>;
  /** How a damaged file was handled at the start. */
  readonly found: Pick<LoadedAlerts, "setAsideAs" | "isPrevious">;
  readonly #file: AlertsFile;
  readonly #log: Logger;
  readonly #listeners = new Set<AlertListener>();
  #pending: AlertEvent[] = [];
  #hasMarks = false;
  #running: Promise<void> | undefined;
  /** The alerts that readers see: those last saved, newest first. */
  #shown: readonly Alert[];
  #failure: string | undefined;
  readonly #clock: Clock;
  /** Steady time at which the next write is due at the regular rate. */
  #nextWriteMs = 0;
  #hurry: () => void = () => undefined;
  #isClosing = false;

  private constructor(file: AlertsFile, found: LoadedAlerts, options: AlertStoreOptions) {
    this.#file = file;
    this.#log = options.log;
    this.#clock = options.clock;
    this.found = found;
    this.securityMarks = found.securityMarks;
    this.machine = new AlertStateMachine(found.state, momentOf(options.clock));
    this.#shown = newestFirst(this.machine.alerts());
  }

  /** Opens the file of a folder, or creates one. Throws CORRUPT for one that a newer version wrote. */
  static async open(options: AlertStoreOptions): Promise<AlertStore> {
    const file = new AlertsFile(options.folder);
    const found = await file.read(options);
    return new AlertStore(file, found, options);
  }

  /**
   * Why the last write failed; undefined after a good one. Unsaved alerts are shown all the same, and saved
   * with the next write.
   */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** Saves the machine's events, then shows and publishes them. Resolves after that; never rejects. */
  take(events: readonly AlertEvent[]): Promise<void> {
    this.#pending.push(...events);
    if (this.#pending.length > 0 || this.#failure !== undefined) this.#running ??= this.#run();
    return this.#running ?? Promise.resolve();
  }

  /** Saves the marks of security events where no change of an alert does. */
  saveMarks(): void {
    this.#hasMarks = true;
    this.#running ??= this.#run();
  }

  /** Calls the listener with every change, in order, once it is saved; the returned function unsubscribes. */
  onEvent(listener: AlertListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The visible alerts, newest first, with current numbers for open ones. */
  *shown(): IterableIterator<Alert> {
    for (const alert of this.#shown) {
      const now = this.machine.find(alert.id);
      // Unsaved changes are not shown; only numbers may be newer.
      yield now?.revision === alert.revision ? now : alert;
    }
  }

  /** Resolves when all events so far are saved. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#hurry();
    while (this.#running !== undefined) await this.#running;
  }

  /** Resolves when the file may be written again: some writes at once, then one per second. */
  async #turn(): Promise<void> {
    const nowMs = this.#clock.steadyMs();
    this.#nextWriteMs = Math.max(this.#nextWriteMs, nowMs) + ALERT_WRITE_INTERVAL_MS;
    const waitMs = this.#nextWriteMs - nowMs - ALERT_WRITES_AT_ONCE * ALERT_WRITE_INTERVAL_MS;
    if (waitMs <= 0 || this.#isClosing) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.after(waitMs, resolve);
      this.#hurry = () => {
        cancel();
        resolve();
      };
    });
  }

  async #run(): Promise<void> {
    // Changes within one turn of the event loop share one write.
    await Promise.resolve();
    do {
      await this.#turn();
      const events = this.#pending;
      this.#pending = [];
      this.#hasMarks = false;
      const state = this.machine.state();
      try {
        await this.#file.write({ state, securityMarks: this.securityMarks });
        this.#failure = undefined;
      } catch (error) {
        this.#failure = errorText(error);
        this.#log.error("alerts_not_saved", { error: this.#failure, changes: events.length });
      }
      this.#shown = newestFirst(state.alerts);
      for (const event of events) for (const listener of this.#listeners) listener(event);
    } while (this.#pending.length > 0 || this.#hasMarks);
    this.#running = undefined;
  }
}

/** Now, on both clocks. */
export function momentOf(clock: Clock): Moment {
  return { wallMs: clock.wallMs(), steadyMs: clock.steadyMs() };
}

function newestFirst(alerts: Iterable<Alert>): Alert[] {
  return [...alerts].sort((a, b) => (a.id < b.id ? 1 : a.id > b.id ? -1 : 0));
}
