// One line of the audit log: an act as JSON, with the SHA-256 of the line before it.
import { hash } from "node:crypto";
import type { AuditAct } from "#base/audit-act.ts";
import { stringify64 } from "#base/json64.ts";

/** Longest text in an audit line, in characters: a username and the longest path fit. */
const AUDIT_TEXT_MAX_LENGTH = 4_400;

/** Head of the chain: the number and the hash of its last line. */
export interface ChainHead {
  readonly seq: number;
  /** SHA-256 of that line without its end, in hexadecimal digits. */
  readonly hash: string;
}

/** Before the first line. */
export const CHAIN_START: ChainHead = { seq: 0, hash: "0".repeat(64) };

/** A line and the head after it. */
export interface AuditLine {
  readonly text: string;
  readonly head: ChainHead;
}

/** Makes the line after a head. */
export function lineAfter(head: ChainHead, act: AuditAct, wallMs: number): AuditLine {
  const seq = head.seq + 1;
  const text = stringify64({
    seq,
    time: new Date(wallMs).toISOString(),
    actor: cut(act.actor),
    act: act.act,
    subject: cut(act.subject),
    ...(act.request === undefined ? {} : { request: cut(act.request) }),
    ...(act.detail === undefined ? {} : { detail: cutAll(act.detail) }),
    prev: head.hash,
  });
  return { text, head: { seq, hash: hashOf(text) } };
}

/** The hash of a line, which the next line contains. */
export function hashOf(line: string): string {
  return hash("sha256", line, "hex");
}

/** Parses a line's place in the chain; undefined for any other text. */
export function readLine(text: string): { seq: number; time: string; prev: string } | undefined {
  try {
    const line: unknown = JSON.parse(text);
    if (typeof line !== "object" || line === null) return undefined;
    const { seq, time, prev } = line as Record<string, unknown>;
    if (typeof seq !== "number" || !Number.isSafeInteger(seq)) return undefined;
    return typeof prev === "string" && typeof time === "string" ? { seq, time, prev } : undefined;
  } catch {
    return undefined;
  }
}

function cut(text: string): string {
  return text.length <= AUDIT_TEXT_MAX_LENGTH ? text : `${text.slice(0, AUDIT_TEXT_MAX_LENGTH)}…`;
}

function cutAll(detail: NonNullable<AuditAct["detail"]>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(detail).map(([name, value]) => [name, typeof value === "string" ? cut(value) : value]),
  );
}
