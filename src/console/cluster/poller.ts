// Polls every node's metrics each 5 s, independent of others and one at a time (spec 4.4, 8, D24, M-08).

import type { Clock } from "#base/clock.ts";
import { POLL_INTERVAL_MS } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { systemFraction } from "#base/random.ts";
import type { NodeReading, SecurityEvent } from "./cluster-state.ts";
import type { ClusterStateStore } from "./cluster-state-store.ts";
import { ListedUsersLimit } from "./listed-users-limit.ts";
import type { NodeAddresses } from "./node-addresses.ts";
import { NodeDocument } from "./node-document.ts";
import type { NodeHttp, NodeTarget } from "./node-http.ts";
import { PollError } from "./poll-error.ts";
import { SecurityEventFeed } from "./security-event-feed.ts";

/** Largest delay of a poll after its due time (decision D24: jittered). */
const POLL_JITTER_MS = 100;
/** Time within which a node must have answered a poll in full (decision D24, M-04). */
export const POLL_TIMEOUT_MS = 3_000;
/**
 * Time for the security events after a good poll; together with the poll's own it stays below the interval.
 */
const POLL_EVENTS_TIMEOUT_MS = 1_500;
/** Bytes of a node's document: the most users that a node lists, with long names. */
export const POLL_ANSWER_MAX_BYTES = 33_554_432;
/** Bytes of a node's list of security events: 100 of them with long names. */
const POLL_EVENTS_MAX_BYTES = 131_072;

/** What polls need. */
export interface PollerDeps {
  readonly clusterState: ClusterStateStore;
  readonly addresses: Pick<NodeAddresses, "target">;
  readonly http: Pick<NodeHttp, "get">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Counts of the polls' outcomes since the start. */
export interface PollCounts {
  readonly answered: number;
  readonly failed: number;
  /** Polls that did not begin, because the one before had not ended or the console stood still. */
  readonly missed: number;
}

interface PolledNode {
  readonly id: string;
  readonly document: NodeDocument;
  readonly feed: SecurityEventFeed;
  /** The node's start and its count of security events at the last read; undefined when they must be read. */
  eventsRead: string | undefined;
  /** Steady time of the next poll without its jitter. */
  dueMs: number;
  isUnderWay: boolean;
  cancel: () => void;
}

/** The golden ratio's fraction: its multiples spread the polls of any number of nodes evenly. */
const EVENLY = 0.618_033_988_749_895;

/** Polls all nodes that it is given. */
export class Poller {
  readonly #deps: PollerDeps;
  readonly #listedUsers = new ListedUsersLimit();
  readonly #nodes = new Map<string, PolledNode>();
  readonly #endChanges: () => void;
  readonly #counts = { answered: 0, failed: 0, missed: 0 };
  #added = 0;
  #isClosed = false;

  constructor(deps: PollerDeps) {
    this.#deps = deps;
    this.#endChanges = deps.clusterState.onChange((id) => {
      if (deps.clusterState.node(id) === undefined) this.#listedUsers.release(id);
    });
  }

  /** Counts of the polls' outcomes. */
  get counts(): PollCounts {
    return { ...this.#counts };
  }

  /** Ids of the nodes with a poll in progress. */
  underWay(): readonly string[] {
    return [...this.#nodes.values()].filter((node) => node.isUnderWay).map((node) => node.id);
  }

  /** Polls these nodes from now on, and no others. */
  setNodes(ids: readonly string[]): void {
    if (this.#isClosed) return;
    const gone = new Set(this.#nodes.keys());
    for (const id of ids) {
      if (!gone.delete(id)) this.#add(id);
    }
    for (const id of gone) {
      this.#nodes.get(id)?.cancel();
      this.#nodes.delete(id);
    }
  }

  /** Starts no more polls. Those in progress end by themselves, or with their connection. */
  close(): void {
    this.#isClosed = true;
    this.#endChanges();
    for (const node of this.#nodes.values()) node.cancel();
    this.#nodes.clear();
  }

  #add(id: string): void {
    const phase = (this.#added++ * EVENLY) % 1;
    const node: PolledNode = {
      id,
      document: new NodeDocument(id, this.#listedUsers),
      feed: new SecurityEventFeed(),
      eventsRead: undefined,
      dueMs: this.#deps.clock.steadyMs() + phase * POLL_INTERVAL_MS,
      isUnderWay: false,
      cancel: () => undefined,
    };
    this.#nodes.set(id, node);
    this.#await(node);
  }

  #await(node: PolledNode): void {
    const { clock } = this.#deps;
    const waitMs = Math.max(0, node.dueMs - clock.steadyMs()) + systemFraction() * POLL_JITTER_MS;
    node.cancel = clock.after(waitMs, () => {
      const lateMs = clock.steadyMs() - node.dueMs;
      // Polls missed during sleep are not made up for.
      const skipped = Math.floor(Math.max(0, lateMs) / POLL_INTERVAL_MS);
      node.dueMs += (skipped + 1) * POLL_INTERVAL_MS;
      this.#counts.missed += skipped;
      this.#await(node);
      if (node.isUnderWay) this.#counts.missed++;
      else void this.#poll(node);
    });
  }

  async #poll(node: PolledNode): Promise<void> {
    const { clusterState, log } = this.#deps;
    node.isUnderWay = true;
    try {
      const target = this.#deps.addresses.target(node.id);
      const answer = await this.#deps.http.get(target, {
        path: node.document.ask(),
        timeoutMs: POLL_TIMEOUT_MS,
        maxBytes: POLL_ANSWER_MAX_BYTES,
      });
      const reading = node.document.read(answer);
      const events = await this.#events(node, target, reading);
      this.#counts.answered++;
      if (this.#isPolled(node)) clusterState.answered(node.id, reading, events);
    } catch (error) {
      this.#counts.failed++;
      const reason = error instanceof PollError ? error.message : "the answer could not be read";
      if (!(error instanceof PollError)) log.error("poll_failed", { node: node.id, error: errorText(error) });
      if (this.#isPolled(node)) clusterState.failed(node.id, reason);
    } finally {
      node.isUnderWay = false;
    }
  }

  /**
   * Returns the node's new security events; asks only when its count has grown. A failure here loses only the
   * events, because the poll itself succeeded.
   */
  async #events(
    node: PolledNode,
    target: NodeTarget,
    { lastRestartUnix, securityEventsTotal }: NodeReading,
  ): Promise<readonly SecurityEvent[]> {
    const standing = securityEventsTotal === null ? undefined : `${lastRestartUnix}:${securityEventsTotal}`;
    if (standing !== undefined && standing === node.eventsRead) return [];
    try {
      const { body } = await this.#deps.http.get(target, {
        path: "/security-events",
        timeoutMs: POLL_EVENTS_TIMEOUT_MS,
        maxBytes: POLL_EVENTS_MAX_BYTES,
      });
      const events = node.feed.take(body);
      node.eventsRead = standing;
      return events;
    } catch {
      return [];
    }
  }

  #isPolled(node: PolledNode): boolean {
    return !this.#isClosed && this.#nodes.get(node.id) === node;
  }
}
