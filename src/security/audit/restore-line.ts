// The line by which a restore goes on in the log that it has brought back: from which backup, of what moment, up to which line (D24).
import type { AuditAct } from "#base/audit-act.ts";
import { readLine } from "./audit-line.ts";

/** What a restore says of itself. */
export interface RestoreFacts {
  /** Id of the backup. */
  readonly backup: string;
  /** When its snapshot was taken, in unix milliseconds. */
  readonly takenAtMs: number;
  /** Number of the last line that the backup had; what came after it on the old disk is gone. */
  readonly upTo: number;
}

/** A restore's line as it was read. */
export interface RestoreLine extends RestoreFacts {
  readonly seq: number;
  /** Hash of the line before it. */
  readonly prev: string;
  /** When it was written, in unix milliseconds by the node's clock. */
  readonly atMs: number;
}

/** The act that is written. */
export function restoreAct({ backup, takenAtMs, upTo }: RestoreFacts, by: string): AuditAct {
  const detail = { backup, taken_at: new Date(takenAtMs).toISOString(), up_to: upTo, by };
  return { act: "backup.restore", actor: "node", subject: "audit", detail };
}

/** Reads a restore's line; undefined for any other, and for one that does not stand where it says. */
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
