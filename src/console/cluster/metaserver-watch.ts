// Polls the MetaServers' /health every 5 s, because the store does not list their state, and their
// certificates' days each minute.

import { AwakeClock } from "#base/awake-clock.ts";
import type { Clock } from "#base/clock.ts";
import { POLL_INTERVAL_MS } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { metricsPortOf } from "#base/metrics-port.ts";
import { formatHostPort, type HostPort } from "#base/node-id.ts";
import type { MetaServerReading } from "#console/alerts/metaserver-rule.ts";
import { AnswerPool } from "./answer-pool.ts";
import { NodeHttp, type NodeTarget } from "./node-http.ts";
import { isOfflineAfter } from "./node-offline.ts";
import { PollError } from "./poll-error.ts";
import { POLL_TIMEOUT_MS } from "./poller.ts";

/** What watching needs. */
export interface MetaServerWatchDeps {
  /** Their gRPC addresses; the port of /health is lower by 41000. */
  readonly addresses: readonly HostPort[];
  readonly clock: Clock;
  readonly log: Logger;
}

interface Watched {
  readonly address: HostPort;
  /** On the watch's own clock: the last answer; before the first, the moment when the watch began. */
  answeredMs: number;
  lastSeenWallMs: number;
  reason: string | undefined;
  /** The last that it told; null before that. */
  certDaysLeft: number | null;
  authorityDaysLeft: number | null;
  /** On the watch's own clock: its next question for them. */
  daysDueMs: number;
  isUnderWay: boolean;
}

const HEALTH_MAX_BYTES = 4_096;
/** Bytes of its /metrics: a few numbers, and the versions of the nodes. */
const METRICS_MAX_BYTES = 262_144;
/** Interval in which each is asked for the days that certificates have left. */
const DAYS_INTERVAL_MS = 60_000;
/** Time for that answer; together with that of /health it stays below the interval of polls. */
const DAYS_TIMEOUT_MS = 1_500;
const UNASKED = "it has not been asked yet";

/** Watches the configured MetaServers until it is closed. */
export class MetaServerWatch {
  readonly #deps: MetaServerWatchDeps;
  /** Time in which the console itself did not run does not count as silence of the MetaServers. */
  readonly #awake: AwakeClock;
  readonly #http: NodeHttp;
  readonly #watched: readonly Watched[];
  readonly #cancel: () => void;
  #isClosed = false;

  constructor(deps: MetaServerWatchDeps) {
    const { addresses, clock } = deps;
    this.#deps = deps;
    this.#awake = new AwakeClock(clock, POLL_INTERVAL_MS);
    // /health needs no token, so none is sent.
    this.#http = new NodeHttp({ clock, pool: new AnswerPool(), token: undefined });
    this.#watched = addresses.map((address) => ({
      address,
      answeredMs: this.#awake.steadyMs(),
      lastSeenWallMs: 0,
      reason: UNASKED,
      certDaysLeft: null,
      authorityDaysLeft: null,
      daysDueMs: Number.NEGATIVE_INFINITY,
      isUnderWay: false,
    }));
    this.#cancel = clock.every(POLL_INTERVAL_MS, () => this.#awake.look(() => this.ask()));
    this.ask();
  }

  /** The state of each, in the order of the addresses. */
  readings(): MetaServerReading[] {
    const nowMs = this.#awake.steadyMs();
    return this.#watched.map((each) => ({
      address: formatHostPort(each.address),
      isLate: each.reason !== undefined,
      isOffline: each.reason !== undefined && isOfflineAfter(nowMs - each.answeredMs),
      lastSeenWallMs: each.lastSeenWallMs,
      reason: each.reason,
      certDaysLeft: each.certDaysLeft,
      authorityDaysLeft: each.authorityDaysLeft,
    }));
  }

  /** Polls those without a poll in progress. */
  ask(): void {
    for (const each of this.#watched) if (!each.isUnderWay) void this.#askOne(each);
  }

  /** True while any poll is in progress. */
  get isAsking(): boolean {
    return this.#watched.some(({ isUnderWay }) => isUnderWay);
  }

  /** Ends the polls and closes every connection. */
  close(): void {
    this.#isClosed = true;
    this.#cancel();
    this.#http.close();
  }

  async #askOne(each: Watched): Promise<void> {
    const { host, port } = each.address;
    each.isUnderWay = true;
    try {
      const target = { ip: host, port: metricsPortOf(port), host };
      await this.#http.get(target, {
        path: "/health",
        timeoutMs: POLL_TIMEOUT_MS,
        maxBytes: HEALTH_MAX_BYTES,
      });
      const before = each.reason;
      each.reason = undefined;
      if (before !== undefined && before !== UNASKED) this.#log("metaserver_back", each);
      each.answeredMs = this.#awake.steadyMs();
      each.lastSeenWallMs = this.#deps.clock.wallMs();
      await this.#askDays(each, target);
    } catch (error) {
      if (this.#isClosed) return;
      const before = each.reason;
      each.reason = error instanceof PollError ? error.message : errorText(error);
      if (before === undefined || before === UNASKED) this.#log("metaserver_silent", each);
    } finally {
      each.isUnderWay = false;
    }
  }

  /** A MetaServer that answers /health and not this is well all the same. */
  async #askDays(each: Watched, target: NodeTarget): Promise<void> {
    if (this.#awake.steadyMs() < each.daysDueMs) return;
    each.daysDueMs = this.#awake.steadyMs() + DAYS_INTERVAL_MS;
    try {
      const ask = { path: "/metrics", timeoutMs: DAYS_TIMEOUT_MS, maxBytes: METRICS_MAX_BYTES };
      const { body } = await this.#http.get(target, ask);
      const told = JSON.parse(body.toString("utf8")) as Readonly<Record<string, unknown>> | null;
      each.certDaysLeft = daysIn(told?.["cert_days_left"]);
      each.authorityDaysLeft = daysIn(told?.["authority_days_left"]);
    } catch {
      // What it told before holds until the next question.
    }
  }

  #log(event: string, { address, reason }: Watched): void {
    const where = { address: formatHostPort(address) };
    if (reason === undefined) this.#deps.log.info(event, where);
    else this.#deps.log.warn(event, { ...where, reason });
  }
}

function daysIn(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) ? value : null;
}
