// An alert as the state machine keeps it: facts, from which texts are made per audience (decision D11).
import { createHash } from "node:crypto";
import { systemRandom } from "#base/random.ts";
import { ulid } from "#base/ulid.ts";
import type { AlertType, Severity } from "#wire/webapi/alert.ts";
import { ALERT_VISIBILITY } from "./alert-visibility.ts";

/** Facts that texts are made from. */
export type AlertDetail = Readonly<Record<string, string | number>>;

/** One alert. Immutable: a change makes a new object. */
export interface Alert {
  /** Time-ordered, so that the newest has the highest. */
  readonly id: string;
  /** Grows with every published change; a new value alone is none. */
  readonly revision: number;
  readonly key: string;
  readonly type: AlertType;
  readonly severity: Severity;
  readonly raisedAtMs: number;
  /** Time of the last event; only for alerts about events. */
  readonly lastAtMs?: number;
  readonly nodeId?: string;
  readonly nodeName?: string;
  readonly username?: string;
  /** True when the alert depends on a node's data about users. */
  readonly isOfUsers?: true;
  readonly value?: number;
  readonly threshold?: number;
  readonly detail?: AlertDetail;
  /** Raises of the key within the kept records, this one included; every event counts. */
  readonly raisedCount: number;
  /** True for the record of an end: resolved from the start. */
  readonly isRecovery: boolean;
  readonly acked?: { readonly by: string; readonly atMs: number };
  readonly resolved?: { readonly by: "auto" | "operator"; readonly atMs: number };
}

/** The worse, the higher. */
export const RANKS: Readonly<Record<Severity, number>> = { info: 0, warning: 1, critical: 2 };

/**
 * The id of an alert: a ULID whose random part is a hash of the alert's content, so that visible ids do not
 * reveal the number of hidden alerts (W-09). Where the key is hidden that part is random, because a hash
 * would reveal an address.
 */
export function alertId(alert: Omit<Alert, "id" | "revision">): string {
  const { key, type, severity, raisedCount, isRecovery, raisedAtMs } = alert;
  if (ALERT_VISIBILITY[type].hidesKey === true) return ulid({ wallMs: () => raisedAtMs }, systemRandom);
  const digest = createHash("sha256").update(JSON.stringify([key, type, severity, raisedCount, isRecovery]));
  const bytes = digest.digest();
  return ulid({ wallMs: () => raisedAtMs }, { bytes: (count) => bytes.subarray(0, count) });
}
