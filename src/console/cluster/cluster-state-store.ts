// Keeps the cluster's state: listed nodes and polls in, nodes with their status out (spec 3.2, T5, D24).
import { AwakeClock } from "#base/awake-clock.ts";
import type { Clock } from "#base/clock.ts";
import { POLL_INTERVAL_MS } from "#base/limits.ts";
import {
  type ClusterState,
  CONSOLE_NODES_MAX,
  type ListenerTurn,
  type NodeReading,
  type NodeState,
  type PollOutcome,
  type SecurityEvent,
} from "./cluster-state.ts";
import { isOfflineAfter } from "./node-offline.ts";
import { gradeOf } from "./node-status.ts";

/** Interval of the check for silent nodes (M-08: offline at 30 to 35 s). */
const STATUS_CHECK_INTERVAL_MS = 1_000;
/** Time for which nodes that left the metadata store are shown as offline (decision D19). */
export const VANISHED_NODE_KEPT_MS: number = 24 * 3_600_000;

/** A node as the metadata store lists it. */
export interface ListedNode {
  readonly id: string;
  readonly name: string;
  /** gRPC address, host:port. */
  readonly address: string;
  /** Base URL of its metrics listener (spec 4.4). */
  readonly metricsUrl: string;
  /** Version from its registration. */
  readonly softwareVersion: string;
}

/** Notes of other parts that a node's state shows. */
export type NodeNotes = Pick<NodeState, "maintenanceUntilWallMs" | "maintenance" | "lockedBy" | "drained">;

/** Clock of the store and its source of notes. */
export interface ClusterStateStoreDeps {
  readonly clock: Clock;
  /** Called after each poll of a node. */
  readonly notesOn?: (nodeId: string) => NodeNotes;
}

interface Entry {
  listed: ListedNode;
  state: NodeState;
  /** On the store's own clock: the last good poll; before the first, the moment when the node appeared. */
  answeredMs: number;
  isPolled: boolean;
  /** Steady time at which the metadata store no longer listed it. */
  vanishedMs: number | undefined;
}

const VANISHED = "the metadata store does not list this node any more";

type ListenersByTurn<News> = Readonly<Record<ListenerTurn, Set<(news: News) => void>>>;

function tell<News>({ first, second }: ListenersByTurn<News>, news: News): void {
  for (const listener of first) listener(news);
  for (const listener of second) listener(news);
}

/** The one place that changes the state of nodes. Its timers run until it is closed. */
export class ClusterStateStore implements ClusterState {
  readonly #clock: Clock;
  /** Time in which the console itself did not run does not count as silence of the nodes. */
  readonly #awake: AwakeClock;
  readonly #notesOn: (nodeId: string) => NodeNotes;
  readonly #entries = new Map<string, Entry>();
  readonly #pollListeners: ListenersByTurn<PollOutcome> = { first: new Set(), second: new Set() };
  readonly #roundListeners: ListenersByTurn<number> = { first: new Set(), second: new Set() };
  readonly #changeListeners = new Set<(nodeId: string) => void>();
  readonly #cancels: readonly (() => void)[];
  readonly #startedMs: number;
  #sorted: readonly NodeState[] | undefined;
  #isListed = false;

  constructor(deps: ClusterStateStoreDeps) {
    this.#clock = deps.clock;
    this.#notesOn = deps.notesOn ?? (() => ({}));
    this.#awake = new AwakeClock(deps.clock, STATUS_CHECK_INTERVAL_MS);
    this.#startedMs = this.#awake.steadyMs();
    this.#cancels = [
      deps.clock.every(STATUS_CHECK_INTERVAL_MS, () => this.#awake.look(() => this.#checkSilence())),
      deps.clock.every(POLL_INTERVAL_MS, () => {
        tell(this.#roundListeners, deps.clock.wallMs());
      }),
    ];
  }

  nodes(): readonly NodeState[] {
    this.#sorted ??= [...this.#entries.values()]
      .map((entry) => entry.state)
      .sort((a, b) => (a.id < b.id ? -1 : 1));
    return this.#sorted;
  }

  node(id: string): NodeState | undefined {
    return this.#entries.get(id)?.state;
  }

  isStarting(): boolean {
    if (isOfflineAfter(this.#awake.steadyMs() - this.#startedMs)) return false;
    return !this.#isListed || [...this.#entries.values()].some((entry) => !entry.isPolled);
  }

  onPoll(listener: (outcome: PollOutcome) => void, turn: ListenerTurn = "second"): () => void {
    this.#pollListeners[turn].add(listener);
    return () => this.#pollListeners[turn].delete(listener);
  }

  onRound(listener: (atWallMs: number) => void, turn: ListenerTurn = "second"): () => void {
    this.#roundListeners[turn].add(listener);
    return () => this.#roundListeners[turn].delete(listener);
  }

  /** Calls the listener at each change, first and last state included, before poll listeners. */
  onChange(listener: (nodeId: string) => void): () => void {
    this.#changeListeners.add(listener);
    return () => this.#changeListeners.delete(listener);
  }

  /**
   * Takes the nodes that the metadata store lists now. Others keep their state, become offline and are
   * forgotten after 24 h (D19). Those that an operator removed or gave up are forgotten at once.
   */
  list(nodes: readonly ListedNode[], givenUp: readonly string[] = []): void {
    this.#isListed = true;
    const gone = new Set(this.#entries.keys());
    for (const node of nodes) {
      gone.delete(node.id);
      this.#put(node);
    }
    const nowMs = this.#clock.steadyMs();
    for (const id of gone) {
      const entry = this.#entries.get(id);
      if (entry === undefined) continue;
      if (givenUp.includes(id)) this.#forget(id);
      else if (entry.vanishedMs === undefined) {
        entry.vanishedMs = nowMs;
        this.#change(entry, { stale: true, pollError: VANISHED });
      } else if (nowMs - entry.vanishedMs > VANISHED_NODE_KEPT_MS) this.#forget(id);
    }
    this.#forgetBeyondLimit();
  }

  /** Records a valid answer to a poll. Unknown nodes are ignored. */
  answered(id: string, reading: NodeReading, securityEvents: readonly SecurityEvent[] = []): void {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.vanishedMs !== undefined) return;
    entry.isPolled = true;
    entry.answeredMs = this.#awake.steadyMs();
    this.#noteAfresh(entry);
    this.#change(entry, {
      status: gradeOf(reading),
      stale: false,
      lastGood: reading,
      lastGoodWallMs: this.#clock.wallMs(),
      pollError: undefined,
    });
    this.#tell(entry, reading, securityEvents);
  }

  /** Records a failed poll: the node is stale at once, and offline when that lasts (D24). */
  failed(id: string, reason: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.vanishedMs !== undefined) return;
    entry.isPolled = true;
    const isOffline = entry.state.status === "offline" || this.#isSilent(entry);
    this.#noteAfresh(entry);
    this.#change(entry, {
      stale: true,
      pollError: reason,
      ...(isOffline ? { status: "offline" as const } : {}),
    });
    this.#tell(entry, undefined, []);
  }

  /** Shows changed notes of a node at once, without waiting for the next poll. */
  noted(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#noteAfresh(entry);
    this.#change(entry, {});
  }

  /** Stops the timers. */
  close(): void {
    for (const cancel of this.#cancels) cancel();
  }

  #put(listed: ListedNode): void {
    const { id, name, address, metricsUrl, softwareVersion } = listed;
    const known = this.#entries.get(id);
    if (known === undefined) {
      const entry: Entry = {
        listed,
        state: {
          id,
          name,
          address,
          metricsUrl,
          softwareVersion,
          status: "unknown",
          stale: true,
          lastGood: undefined,
          lastGoodWallMs: 0,
          pollError: undefined,
        },
        answeredMs: this.#awake.steadyMs(),
        isPolled: false,
        vanishedMs: undefined,
      };
      this.#entries.set(id, entry);
      this.#change(entry, {});
      return;
    }
    known.vanishedMs = undefined;
    const was = known.listed;
    known.listed = listed;
    if (
      was.name !== name ||
      was.address !== address ||
      was.metricsUrl !== metricsUrl ||
      was.softwareVersion !== softwareVersion
    ) {
      this.#change(known, { name, address, metricsUrl, softwareVersion });
    }
  }

  /** Replaces the node's notes. */
  #noteAfresh(entry: Entry): void {
    const {
      maintenanceUntilWallMs: _until,
      maintenance: _why,
      lockedBy: _by,
      drained: _drained,
      ...bare
    } = entry.state;
    entry.state = { ...bare, ...this.#notesOn(entry.state.id) };
  }

  #change(entry: Entry, change: Partial<NodeState>): void {
    entry.state = { ...entry.state, ...change };
    this.#sorted = undefined;
    for (const listener of this.#changeListeners) listener(entry.state.id);
  }

  #tell(entry: Entry, reading: NodeReading | undefined, securityEvents: readonly SecurityEvent[]): void {
    const outcome: PollOutcome = {
      node: entry.state,
      reading,
      wallMs: this.#clock.wallMs(),
      steadyMs: this.#clock.steadyMs(),
      securityEvents,
    };
    tell(this.#pollListeners, outcome);
  }

  #forget(id: string): void {
    this.#entries.delete(id);
    this.#sorted = undefined;
    for (const listener of this.#changeListeners) listener(id);
  }

  #forgetBeyondLimit(): void {
    let excess = this.#entries.size - CONSOLE_NODES_MAX;
    if (excess <= 0) return;
    const vanished = [...this.#entries.values()]
      .filter((entry) => entry.vanishedMs !== undefined)
      .sort((a, b) => (a.vanishedMs ?? 0) - (b.vanishedMs ?? 0));
    for (const entry of vanished) {
      if (excess <= 0) break;
      this.#forget(entry.state.id);
      excess--;
    }
  }

  #checkSilence(): void {
    for (const entry of this.#entries.values()) {
      if (entry.state.stale && entry.state.status !== "offline" && this.#isSilent(entry)) {
        this.#change(entry, { status: "offline" });
      }
    }
  }

  #isSilent(entry: Entry): boolean {
    return isOfflineAfter(this.#awake.steadyMs() - entry.answeredMs);
  }
}
