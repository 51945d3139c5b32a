// What is told to whom and when: conditions in, messages out, and what mutes them (decision D11). Off until settings name a receiver.
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import type { Condition, Moment, Occurrence } from "./condition.ts";
import type { MaintenanceWindow } from "./maintenance-windows.ts";

/** What the notifier is opened with. */
export interface NotifierDeps {
  /** The console's data folder: silences, what has been told and what waits lie there. */
  readonly dataFolder: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The notification layer. */
export class Notifier {
  /** Reads what an earlier run has left. */
  static async open(_deps: NotifierDeps): Promise<Notifier> {
    return new Notifier();
  }

  /** Takes an evaluation's conditions, once per round. */
  observe(_conditions: readonly Condition[], _at: Moment): void {}

  /** Takes what has happened since the last evaluation. */
  occurred(_occurrences: readonly Occurrence[], _at: Moment): void {}

  /** An operator has seen this alert, or resolved it by hand: it is not repeated until it becomes worse or comes back. */
  acked(_key: string): void {}

  /** Mutes what an action on these nodes causes; answers the window's id. */
  openMaintenance(_window: MaintenanceWindow): string {
    return "";
  }

  /** The action has ended: the window goes on until its nodes have answered for 60 s, at most until its end. */
  closeMaintenance(_id: string): void {}

  /** Until when a node is under maintenance at most, in wall milliseconds; undefined when it is not. */
  maintenanceUntil(_nodeId: string): number | undefined {
    return undefined;
  }

  /** Ends all delivery; what waits stays on disk. */
  async close(): Promise<void> {}
}
