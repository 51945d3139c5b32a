// The line with which a restore continues the log that it has brought back: backup, moment and last line
// (D24).
import type { AuditAct } from "#base/audit-act.ts";
import { readLine } from "./audit-line.ts";

/** The facts of a restore. */
export interface RestoreFacts {
  /** Id of the backup. */
  readonly backup: string;
  /** Time of its snapshot, in unix milliseconds. */
  readonly takenAtMs: number;
  /** Number of the last line in the backup; later lines of the old disk are gone. */
  readonly upTo: number;
}

/** A parsed line of a restore. */
export interface RestoreLine extends RestoreFacts {
  readonly seq: number;
  /** Hash of the line before it. */
  readonly prev: string;
  /** Time of the line, in unix milliseconds by the node's clock. */
  readonly atMs: number;
}

/** The act for the log. */
export function restoreAct({ backup, takenAtMs, upTo }: RestoreFacts, by: string): AuditAct {
  const detail = { backup, taken_at: new Date(takenAtMs).toISOString(), up_to: upTo, by };
  return { act: "backup.restore", actor: "node", subject: "audit", detail };
}

/** Parses a restore's line; undefined for any other, and for one with a wrong place. */
export function readRestore(text: string): RestoreLine | undefined {
  if (!text.includes('"act":"backup.restore"')) return undefined;
  const place = readLine(text);
  if (place === undefined) return undefined;
  const { act, detail } = JSON.parse(text) as { readonly act?: unknown; readonly detail?: unknown };
  if (act !== "backup.restore" || typeof detail !== "object" || detail === null) return undefined;
  const { backup, taken_at: takenAt, up_to: upTo } = detail as Readonly<Record<string, unknown>>;
  const takenAtMs = typeof takenAt === "string" ? Date.parse(takenAt) : Number.NaN;
  if (typeof backup !== "string" || !/^[\w.-]{1,64}$/.test(backup) || Number.isNaN(takenAtMs))
    return undefined;
  if (upTo !== place.seq - 1) return undefined;
  return { backup, takenAtMs, upTo, seq: place.seq, prev: place.prev, atMs: Date.parse(place.time) };
}
