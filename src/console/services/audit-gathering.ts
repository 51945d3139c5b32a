// Pulls the audit log of every node, line after line, and notices when one no longer goes on from what was pulled before (D24, T8).

import type { AuditSink } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { DAY_MS } from "#base/duration.ts";
import { AUDIT_PAGE_LINES } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { alertKey } from "#console/alerts/alert-kinds.ts";
import type { Occurrence } from "#console/alerts/condition.ts";
import type { NodeName } from "#console/alerts/node-rules.ts";
import type { ClusterState, NodeState } from "#console/cluster/cluster-state.ts";
import { NoAnswer } from "#console/cluster/no-answer.ts";
import type { NodeAddresses } from "#console/cluster/node-addresses.ts";
import type { NodeHttp } from "#console/cluster/node-http.ts";
import type { AuditCopies } from "#security/audit/audit-copies.ts";
import { hashOf, readLine } from "#security/audit/audit-line.ts";
import type { AuditLog } from "#security/audit/audit-log.ts";
import { CONSOLE_SOURCE } from "#security/audit/copied-line.ts";
import { copiedRestore, type LostLines, lostLines } from "#security/audit/lost-lines.ts";
import { type RestoreLine, readRestore } from "#security/audit/restore-line.ts";
import { AUDIT_SUSPECT_MS, type FoundRestore } from "./restored-node.ts";

/** How often the console asks a node for its audit lines; what is lost with the node's disk is younger than this. */
export const AUDIT_GATHER_INTERVAL_MS = 30_000;
/** Nodes asked for audit lines at once. */
const AUDIT_GATHERS_AT_ONCE = 8;
/** Pages of audit lines that are taken from a node in one go, so that one with much to tell does not hold a place. */
const AUDIT_GATHER_PAGES = 8;
/** Time in which a page of audit lines must have arrived. */
const AUDIT_GATHER_TIMEOUT_MS = 5_000;
/** Bytes of a page of audit lines with all that is around them, and of the longest line beyond the page's own bound. */
const AUDIT_GATHER_MAX_BYTES = 2_097_152;
/** Bytes of audit lines that are taken from one node in a day, so that one that lies cannot push the others' out. */
const AUDIT_GATHER_NODE_DAY_BYTES = 67_108_864;
/** Chains that are begun for one node, one more with each break; then an operator must look. */
export const AUDIT_GENERATIONS_MAX = 16;

/** What gathering needs. */
export interface AuditGatheringDeps {
  readonly copies: AuditCopies;
  /** The console's own log. */
  readonly own: Pick<AuditLog, "read" | "flush">;
  readonly cluster: Pick<ClusterState, "onPoll" | "onRound">;
  readonly addresses: Pick<NodeAddresses, "target">;
  readonly http: Pick<NodeHttp, "get">;
  /** Takes the console's own line about a break. */
  readonly audit: AuditSink;
  /** Takes the alert about a break. */
  readonly onBroken: (occurrence: Occurrence) => void;
  /** Takes a restore, which is why a log goes on from an earlier line. */
  readonly onRestored: (found: FoundRestore) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The console itself, as one of those whose lines are kept. */
const CONSOLE: NodeName = { id: CONSOLE_SOURCE, name: "the console" };

const NOTHING_LOST: LostLines = { hash: undefined, count: 0, changed: new Set(), quotas: new Set() };

interface Source {
  isUnderWay: boolean;
  dueMs: number;
  askedAtUnix: number;
  problem: string | undefined;
  /** True once its log was read to its end: from then on a restore in it is news. */
  isCaughtUp: boolean;
  /** Bytes taken since this moment, at most a day ago. */
  dayStartMs: number;
  dayBytes: number;
}

/** A log that does not go on from what was gathered. It is read anew, and accused at its end unless a restore in it says why. */
interface Suspect {
  node: NodeName;
  readonly reason: string;
  /** The chain as it was gathered before. */
  readonly generation: number;
  readonly knownSeq: number;
  readonly sinceMs: number;
  /** True when an earlier console began to look at it, and may have taken what tells of a restore. */
  readonly isTakenUp: boolean;
  restore: RestoreLine | undefined;
}

/** What a node answers: its lines as they were written. */
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

  /** How each source stands. */
  chains(): { node: string; last_seq: number; asked_at: number; breaks: number; problem?: string }[] {
    const states = this.#deps.copies.states();
    return [...new Set([...states.keys(), ...this.#sources.keys()])].sort().map((node) => {
      const [state, source] = [states.get(node), this.#sources.get(node)];
      return {
        node,
        last_seq: state?.head?.seq ?? 0,
        asked_at: source?.askedAtUnix ?? 0,
        // One that is looked into accuses nobody yet.
        breaks: (state?.generation ?? 1) - 1 - (state?.explained ?? 0) - (this.#suspects.has(node) ? 1 : 0),
        ...(source?.problem === undefined ? {} : { problem: source.problem }),
      };
    });
  }

  /** Takes the console's own lines over, so that one look finds everything. Rejects when they cannot be read. */
  takeOwn(): Promise<void> {
    this.#ownTurn = this.#ownTurn.catch(() => undefined).then(() => this.#takeOwnPages());
    return this.#ownTurn;
  }

  /** Gathers no more. Whoever could not be cleared by now is accused: the next console would know nothing of it. */
  close(): void {
    for (const end of this.#ends) end();
    for (const suspect of this.#suspects.values()) this.#accuse(suspect);
    this.#suspects.clear();
  }

  /** Those whom a console that was killed could not judge any more. */
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
        // Without lines there is nothing to go on with, whatever number the last one is said to have.
        if (page.lines.length === 0 || page.nextAfter >= page.headSeq) break;
      }
    }
    await copies.flush();
  }

  #maybe(node: NodeState): void {
    // A node by the console's own name must not speak for it.
    if (node.id === CONSOLE.id) return;
    const nowMs = this.#deps.clock.steadyMs();
    const source = this.#sourceOf(node.id, nowMs);
    if (source.isUnderWay || nowMs < source.dueMs || this.#underWay >= AUDIT_GATHERS_AT_ONCE) return;
    source.isUnderWay = true;
    source.dueMs = nowMs + AUDIT_GATHER_INTERVAL_MS;
    this.#underWay++;
    void this.gather(node, source)
      .catch((error: unknown) => {
        source.problem = error instanceof NoAnswer ? error.message : errorText(error);
        this.#deps.log.debug("audit_not_gathered", { node: node.id, problem: source.problem });
      })
      .finally(() => {
        source.isUnderWay = false;
        this.#underWay--;
      });
  }

  /** Takes what is new of one node. */
  private async gather(node: NodeState, source: Source): Promise<void> {
    const { copies, addresses, http, clock } = this.#deps;
    for (let page = 0; page < AUDIT_GATHER_PAGES; page++) {
      const { generation, head } = copies.states().get(node.id) ?? { generation: 1, head: undefined };
      if (generation > AUDIT_GENERATIONS_MAX) {
        await this.#judge(node.id);
        throw new NoAnswer(`its log broke ${generation - 1} times`);
      }
      if (isUsedUp(source, clock)) throw new NoAnswer("it has told more than a day's share");
      // The last known line once more: whoever rewrites the past cannot keep its hash.
      const after = Math.max(0, (head?.seq ?? 0) - 1);
      const body = await http.get(addresses.target(node.id), {
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

  /** Takes lines; where the chain breaks among them, another begins with the line that does not follow. */
  #takeAll(from: NodeName, lines: readonly string[]): void {
    const { copies } = this.#deps;
    let rest = lines;
    for (;;) {
      const { taken, problem } = copies.take(from.id, rest);
      if (problem === undefined) return;
      this.#broken(from, problem);
      // What is no line begins no chain either: it is asked for again, and not for ever.
      if (!isLine(rest[taken])) return;
      if ((copies.states().get(from.id)?.generation ?? 1) > AUDIT_GENERATIONS_MAX) return;
      rest = rest.slice(taken);
    }
  }

  /** The chain of a node ends here, and another is gathered from its first line on, before anybody is accused. */
  async #suspect({ id, name }: NodeName, reason: string): Promise<void> {
    // One that changes again while it is looked at has had its chance.
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

  /** Whose log cannot be read to its end is not spared for that. */
  #judgeOverdue(): void {
    const dueMs = this.#deps.clock.steadyMs() - AUDIT_SUSPECT_MS;
    for (const [id, { sinceMs }] of this.#suspects) if (sinceMs <= dueMs) void this.#judge(id);
  }

  /** Lines that were taken may tell of a restore: of a log that is looked at it is kept, of one that simply goes on it is told. */
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
    // It follows the line before it, as every line that is taken: nothing that was gathered is lost.
    if (last !== undefined && isCaughtUp) this.#tellOfRestore(node, last, NOTHING_LOST);
  }

  /** The log of a suspect was read to its end: a restore that goes on from a line that was gathered is the reason, else it is accused. */
  async #judge(id: string): Promise<void> {
    const suspect = this.#suspects.get(id);
    if (suspect === undefined) return;
    const isExplained = await this.#isExplained(suspect).catch((error: unknown) => {
      this.#deps.log.error("audit_not_compared", { node: id, error: errorText(error) });
      return false;
    });
    // Somebody else may have judged meanwhile.
    if (this.#suspects.get(id) !== suspect) return;
    this.#suspects.delete(id);
    if (!isExplained) this.#accuse(suspect);
  }

  /** True when a restore goes on from a line that was gathered, which is told then. */
  async #isExplained({ restore, node, generation, knownSeq, isTakenUp }: Suspect): Promise<boolean> {
    if (restore === undefined && !isTakenUp) return false;
    const { copies } = this.#deps;
    await copies.flush();
    const next = { source: node.id, generation: generation + 1 };
    const line = restore ?? (await copiedRestore(copies, next, knownSeq));
    if (line === undefined) return false;
    const lost = await lostLines(copies, { source: node.id, generation }, line.upTo);
    // Lines of long ago may be among the copies no more.
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

/** Cuts an answer into its lines without parsing and writing them again, which might change them. Throws NoAnswer for anything else. */
export function readAnswer(body: Buffer): AuditAnswer {
  const text = body.toString("utf8");
  const end = text.lastIndexOf('],"next_after":');
  const [, headSeq, isComplete] = TAIL.exec(text.slice(end)) ?? [];
  if (!text.startsWith(HEAD) || end < HEAD.length || headSeq === undefined) {
    throw new NoAnswer("the answer is no page of an audit log");
  }
  const entries = text.slice(HEAD.length, end);
  return {
    lines: entries === "" ? [] : entries.split(",\n"),
    headSeq: Number(headSeq),
    isComplete: isComplete === "true",
  };
}
