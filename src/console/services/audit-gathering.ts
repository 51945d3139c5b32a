// Pulls the audit log of every node and detects one that does not continue the pulled part (D24, T8).

import type { AuditSink } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { DAY_MS } from "#base/duration.ts";
import { AUDIT_PAGE_LINES } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { alertKey } from "#console/alerts/alert-kinds.ts";
import type { Occurrence } from "#console/alerts/condition.ts";
import type { NodeName } from "#console/alerts/node-rules.ts";
import type { ClusterState, NodeState } from "#console/cluster/cluster-state.ts";
import type { NodeAddresses } from "#console/cluster/node-addresses.ts";
import type { NodeHttp } from "#console/cluster/node-http.ts";
import { PollError } from "#console/cluster/poll-error.ts";
import type { AuditCopies } from "#security/audit/audit-copies.ts";
import { hashOf, readLine } from "#security/audit/audit-line.ts";
import type { AuditLog } from "#security/audit/audit-log.ts";
import { CONSOLE_SOURCE } from "#security/audit/copied-line.ts";
import { copiedRestore, type LostLines, lostLines } from "#security/audit/lost-lines.ts";
import { type RestoreLine, readRestore } from "#security/audit/restore-line.ts";
import { AUDIT_SUSPECT_MS, type FoundRestore } from "./restored-node.ts";

/** Poll interval for audit lines; at most this much is lost with a node's disk. */
export const AUDIT_GATHER_INTERVAL_MS = 30_000;
/** Nodes asked for audit lines at once. */
const AUDIT_GATHERS_AT_ONCE = 8;
/** Pages of audit lines per poll, so that a long log does not hold a slot. */
const AUDIT_GATHER_PAGES = 8;
/** Time limit for a page of audit lines. */
const AUDIT_GATHER_TIMEOUT_MS = 5_000;
/** Bytes of a page of audit lines with its envelope, and of the longest line beyond the page's own bound. */
const AUDIT_GATHER_MAX_BYTES = 2_097_152;
/** Bytes of audit lines from one node in a day, so that a lying node cannot push out the others' lines. */
const AUDIT_GATHER_NODE_DAY_BYTES = 67_108_864;
/** Chains of one node, one more after each break; then an operator must look. */
export const AUDIT_GENERATIONS_MAX = 16;

/** Dependencies of gathering. */
export interface AuditGatheringDeps {
  readonly copies: AuditCopies;
  /** The console's own log. */
  readonly own: Pick<AuditLog, "read" | "flush">;
  readonly cluster: Pick<ClusterState, "onPoll" | "onRound">;
  readonly addresses: Pick<NodeAddresses, "target">;
  readonly http: Pick<NodeHttp, "get">;
  /** Receives the accepted lines of nodes, in order; after a failed write some come again. */
  readonly onLines?: (nodeId: string, lines: readonly string[]) => void;
  /** Receives the console's own line about a break. */
  readonly audit: AuditSink;
  /** Receives the alert about a break. */
  readonly onBroken: (occurrence: Occurrence) => void;
  /** Receives a restore, which explains a log that continues from an earlier line. */
  readonly onRestored: (found: FoundRestore) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The console as a source of lines. */
const CONSOLE: NodeName = { id: CONSOLE_SOURCE, name: "the console" };

const NOTHING_LOST: LostLines = { hash: undefined, count: 0, changed: new Set(), quotas: new Set() };

interface Source {
  isUnderWay: boolean;
  dueMs: number;
  askedAtUnix: number;
  problem: string | undefined;
  /** True once its log is read to the end: a later restore in it is new. */
  isCaughtUp: boolean;
  /** Begin of the day whose bytes are counted. */
  dayStartMs: number;
  dayBytes: number;
}

/**
 * A log that does not continue the gathered part. It is read again, and reported at its end unless it
 * explains itself by a restore.
 */
interface Suspect {
  node: NodeName;
  readonly reason: string;
  /** The chain gathered before. */
  readonly generation: number;
  readonly knownSeq: number;
  readonly sinceMs: number;
  /** True when an earlier console began the check, and may have gathered the line about a restore. */
  readonly isTakenUp: boolean;
  restore: RestoreLine | undefined;
}

/** A node's answer: its lines as they were written. */
export interface AuditAnswer {
  readonly lines: readonly string[];
  /** Number of its last line on stable storage. */
  readonly headSeq: number;
  readonly isComplete: boolean;
}

/** Gathers from all nodes that answer. */
export class AuditGathering {
  readonly #deps: AuditGatheringDeps;
  readonly #sources = new Map<string, Source>();
  readonly #suspects = new Map<string, Suspect>();
  readonly #ends: (() => void)[];
  #underWay = 0;
  #ownTurn: Promise<void> = Promise.resolve();

  constructor(deps: AuditGatheringDeps) {
    this.#deps = deps;
    this.#takeUpSuspects();
    this.#ends = [
      deps.cluster.onPoll(({ node, reading }) => {
        if (reading !== undefined) this.#maybe(node);
      }),
      deps.cluster.onRound(() => {
        this.#judgeOverdue();
        this.takeOwn().catch((error: unknown) => {
          deps.log.error("audit_not_gathered", { node: CONSOLE.id, error: errorText(error) });
        });
      }),
    ];
  }

  /** State of each source. */
  chains(): { node: string; last_seq: number; asked_at: number; breaks: number; problem?: string }[] {
    const states = this.#deps.copies.states();
    return [...new Set([...states.keys(), ...this.#sources.keys()])].sort().map((node) => {
      const [state, source] = [states.get(node), this.#sources.get(node)];
      return {
        node,
        last_seq: state?.head?.seq ?? 0,
        asked_at: source?.askedAtUnix ?? 0,
        // A chain under suspicion is not a break yet.
        breaks: (state?.generation ?? 1) - 1 - (state?.explained ?? 0) - (this.#suspects.has(node) ? 1 : 0),
        ...(source?.problem === undefined ? {} : { problem: source.problem }),
      };
    });
  }

  /** Gathers the console's own lines, so that one search covers all. Rejects when they cannot be read. */
  takeOwn(): Promise<void> {
    this.#ownTurn = this.#ownTurn.catch(() => undefined).then(() => this.#takeOwnPages());
    return this.#ownTurn;
  }

  /** Stops gathering. Open suspicions become breaks, since the next console would not know of them. */
  close(): void {
    for (const end of this.#ends) end();
    for (const suspect of this.#suspects.values()) this.#accuse(suspect);
    this.#suspects.clear();
  }

  /** Resumes the suspicions of a console that was killed. */
  #takeUpSuspects(): void {
    const sinceMs = this.#deps.clock.steadyMs();
    for (const [id, { generation, suspicion }] of this.#deps.copies.states()) {
      if (suspicion === undefined) continue;
      const chain = { node: { id, name: id }, generation: generation - 1, sinceMs };
      this.#suspects.set(id, { ...chain, ...suspicion, isTakenUp: true, restore: undefined });
    }
  }

  async #takeOwnPages(): Promise<void> {
    const { own, copies } = this.#deps;
    await own.flush();
    for (;;) {
      const after = copies.states().get(CONSOLE.id)?.head?.seq ?? 0;
      const page = await own.read(after, AUDIT_PAGE_LINES);
      if (page.headSeq < after) this.#broken(CONSOLE, ended(page.headSeq, after));
      else {
        this.#takeAll(CONSOLE, page.lines);
        // Without new lines the loop ends, even if the node reports a higher last number.
        if (page.lines.length === 0 || page.nextAfter >= page.headSeq) break;
      }
    }
    await copies.flush();
  }

  #maybe(node: NodeState): void {
    // A node with the console's name must not write its chain.
    if (node.id === CONSOLE.id) return;
    const nowMs = this.#deps.clock.steadyMs();
    const source = this.#sourceOf(node.id, nowMs);
    if (source.isUnderWay || nowMs < source.dueMs || this.#underWay >= AUDIT_GATHERS_AT_ONCE) return;
    source.isUnderWay = true;
    source.dueMs = nowMs + AUDIT_GATHER_INTERVAL_MS;
    this.#underWay++;
    void this.gather(node, source)
      .catch((error: unknown) => {
        source.problem = error instanceof PollError ? error.message : errorText(error);
        this.#deps.log.debug("audit_not_gathered", { node: node.id, problem: source.problem });
      })
      .finally(() => {
        source.isUnderWay = false;
        this.#underWay--;
      });
  }

  /** Gathers the new lines of one node. */
  private async gather(node: NodeState, source: Source): Promise<void> {
    const { copies, addresses, http, clock } = this.#deps;
    for (let page = 0; page < AUDIT_GATHER_PAGES; page++) {
      const { generation, head } = copies.states().get(node.id) ?? { generation: 1, head: undefined };
      if (generation > AUDIT_GENERATIONS_MAX) {
        await this.#judge(node.id);
        throw new PollError(`its log broke ${generation - 1} times`);
      }
      if (isUsedUp(source, clock)) throw new PollError("it has told more than a day's share");
      // Asks for the last known line again: a rewritten past cannot reproduce its hash.
      const after = Math.max(0, (head?.seq ?? 0) - 1);
      const { body } = await http.get(addresses.target(node.id), {
        path: `/audit?after=${after}&limit=${AUDIT_PAGE_LINES}`,
        timeoutMs: AUDIT_GATHER_TIMEOUT_MS,
        maxBytes: AUDIT_GATHER_MAX_BYTES,
      });
      const answer = readAnswer(body);
      source.dayBytes += body.length;
      source.askedAtUnix = Math.floor(clock.wallMs() / 1000);
      source.problem = undefined;
      const fresh = head === undefined ? answer.lines : answer.lines.slice(1);
      const [known] = answer.lines;
      const isOther = head !== undefined && known !== undefined && hashOf(known) !== head.hash;
      if (head !== undefined && answer.headSeq < head.seq)
        await this.#suspect(node, ended(answer.headSeq, head.seq));
      else if (isOther) await this.#suspect(node, `line ${head.seq} is not the one that was gathered`);
      else {
        this.#takeAll(node, fresh);
        this.#noteRestores(node, fresh, source.isCaughtUp);
        if (!answer.isComplete && fresh.length > 0) continue;
        source.isCaughtUp = true;
        await this.#judge(node.id);
        return;
      }
    }
  }

  /** Appends lines; a line that breaks the chain begins another one. */
  #takeAll(from: NodeName, lines: readonly string[]): void {
    const { copies } = this.#deps;
    let rest = lines;
    for (;;) {
      const { taken, problem } = copies.take(from.id, rest);
      if (taken > 0 && from.id !== CONSOLE.id) this.#deps.onLines?.(from.id, rest.slice(0, taken));
      if (problem === undefined) return;
      this.#broken(from, problem);
      // An invalid line begins no chain; it is asked for again a limited number of times.
      if (!isLine(rest[taken])) return;
      if ((copies.states().get(from.id)?.generation ?? 1) > AUDIT_GENERATIONS_MAX) return;
      rest = rest.slice(taken);
    }
  }

  /** Ends a node's chain and gathers a new one from the first line, before a break is reported. */
  async #suspect({ id, name }: NodeName, reason: string): Promise<void> {
    // A second change during a check ends the check.
    await this.#judge(id);
    const { copies, log } = this.#deps;
    const { generation = 1, head } = copies.states().get(id) ?? {};
    log.warn("audit_goes_back", { node: id, reason });
    copies.startOver(id, reason, true);
    const knownSeq = head?.seq ?? 0;
    const sinceMs = this.#deps.clock.steadyMs();
    const found = { reason, generation, knownSeq, sinceMs, isTakenUp: false, restore: undefined };
    this.#suspects.set(id, { node: { id, name }, ...found });
  }

  /** Reports suspects whose log was not read to its end in time. */
  #judgeOverdue(): void {
    const dueMs = this.#deps.clock.steadyMs() - AUDIT_SUSPECT_MS;
    for (const [id, { sinceMs }] of this.#suspects) if (sinceMs <= dueMs) void this.#judge(id);
  }

  /** Looks for restores among new lines: kept for a suspect, reported at once for a log that continues. */
  #noteRestores(node: NodeName, lines: readonly string[], isCaughtUp: boolean): void {
    const suspect = this.#suspects.get(node.id);
    if (suspect !== undefined) suspect.node = { id: node.id, name: node.name };
    let last: RestoreLine | undefined;
    for (const text of lines) {
      const line = readRestore(text);
      if (line === undefined) continue;
      if (suspect === undefined) last = line;
      else if (line.upTo <= suspect.knownSeq) suspect.restore = line;
    }
    // It continues the chain as every gathered line does: no line is lost.
    if (last !== undefined && isCaughtUp) this.#tellOfRestore(node, last, NOTHING_LOST);
  }

  /** Ends a check at the log's end: a restore from a gathered line explains it, else reports a break. */
  async #judge(id: string): Promise<void> {
    const suspect = this.#suspects.get(id);
    if (suspect === undefined) return;
    const isExplained = await this.#isExplained(suspect).catch((error: unknown) => {
      this.#deps.log.error("audit_not_compared", { node: id, error: errorText(error) });
      return false;
    });
    // A concurrent check may have finished first.
    if (this.#suspects.get(id) !== suspect) return;
    this.#suspects.delete(id);
    if (!isExplained) this.#accuse(suspect);
  }

  /** True for a restore from a gathered line; reports it. */
  async #isExplained({ restore, node, generation, knownSeq, isTakenUp }: Suspect): Promise<boolean> {
    if (restore === undefined && !isTakenUp) return false;
    const { copies } = this.#deps;
    await copies.flush();
    const next = { source: node.id, generation: generation + 1 };
    const line = restore ?? (await copiedRestore(copies, next, knownSeq));
    if (line === undefined) return false;
    const lost = await lostLines(copies, { source: node.id, generation }, line.upTo);
    // Old lines may be gone from the copies.
    if (line.upTo > 0 && lost.hash !== undefined && lost.hash !== line.prev) return false;
    const taken = new Date(line.takenAtMs).toISOString();
    copies.explain(node.id, `restored from backup ${line.backup} of ${taken}, up to line ${line.upTo}`);
    this.#tellOfRestore(node, line, lost);
    return true;
  }

  #tellOfRestore({ id, name }: NodeName, line: RestoreLine, lost: LostLines): void {
    const { audit, onRestored, log } = this.#deps;
    const taken = new Date(line.takenAtMs).toISOString();
    log.info("node_restored", { node: id, backup: line.backup, lost_lines: lost.count });
    const detail = { backup: line.backup, taken_at: taken, up_to: line.upTo, lost_lines: lost.count };
    audit({ act: "audit.restored", actor: "console", subject: id, detail });
    onRestored({ node: { id, name }, line, lost });
  }

  #broken(node: NodeName, reason: string): void {
    this.#deps.copies.startOver(node.id, reason);
    this.#accuse({ node, reason });
  }

  #accuse({ node: { id, name }, reason }: Pick<Suspect, "node" | "reason">): void {
    const { audit, copies, onBroken, log } = this.#deps;
    log.error("audit_broken", { node: id, reason });
    audit({ act: "audit.broken", actor: "console", subject: id, detail: { reason } });
    onBroken({
      key: alertKey("audit_broken", id),
      type: "audit_broken",
      level: "critical",
      nodeId: id,
      nodeName: name,
      detail: { reason },
    });
    copies.accuse(id);
  }

  #sourceOf(id: string, nowMs: number): Source {
    const known = this.#sources.get(id);
    if (known !== undefined) return known;
    const source: Source = {
      isUnderWay: false,
      dueMs: nowMs,
      askedAtUnix: 0,
      problem: undefined,
      isCaughtUp: this.#deps.copies.states().get(id)?.head !== undefined,
      dayStartMs: nowMs,
      dayBytes: 0,
    };
    this.#sources.set(id, source);
    return source;
  }
}

function isLine(text: string | undefined): boolean {
  return text !== undefined && readLine(text) !== undefined;
}

function ended(headSeq: number, knownSeq: number): string {
  return `the log ends with line ${headSeq}; line ${knownSeq} was gathered from it`;
}

function isUsedUp(source: Source, clock: Clock): boolean {
  const nowMs = clock.steadyMs();
  if (nowMs - source.dayStartMs >= DAY_MS) {
    source.dayStartMs = nowMs;
    source.dayBytes = 0;
  }
  return source.dayBytes >= AUDIT_GATHER_NODE_DAY_BYTES;
}

const HEAD = '{"entries":[';
const TAIL = /^\],"next_after":\d{1,15},"head_seq":(\d{1,15}),"complete":(true|false)\}\s*$/;

/** Splits an answer into its lines as they are, without reserialising them. Throws PollError if invalid. */
export function readAnswer(body: Buffer): AuditAnswer {
  const text = body.toString("utf8");
  const end = text.lastIndexOf('],"next_after":');
  const [, headSeq, isComplete] = TAIL.exec(text.slice(end)) ?? [];
  if (!text.startsWith(HEAD) || end < HEAD.length || headSeq === undefined) {
    throw new PollError("the answer is no page of an audit log");
  }
  const entries = text.slice(HEAD.length, end);
  return {
    lines: entries === "" ? [] : entries.split(",\n"),
    headSeq: Number(headSeq),
    isComplete: isComplete === "true",
  };
}
