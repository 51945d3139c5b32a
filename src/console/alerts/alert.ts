// An alert as the book keeps it: facts only. Texts are made from them for whoever looks (decision D11).
import { createHash } from "node:crypto";
import { systemRandom } from "#base/random.ts";
import { ulid } from "#base/ulid.ts";
import type { AlertType, Severity } from "#wire/webapi/alert.ts";
import { ALERT_KINDS } from "./alert-kinds.ts";

/** Facts that texts are made from. */
export type AlertDetail = Readonly<Record<string, string | number>>;

/** One alert. Never changed: what becomes of it is a new object. */
export interface Alert {
  /** Time-ordered, so that the newest has the highest. */
  readonly id: string;
  /** Goes up with every change that is told; a fresher value alone is none. */
  readonly revision: number;
  readonly key: string;
  readonly type: AlertType;
  readonly severity: Severity;
  readonly raisedAtMs: number;
  /** When something like it has happened last; only of what happens, as against what is so. */
  readonly lastAtMs?: number;
  readonly nodeId?: string;
  readonly nodeName?: string;
  readonly username?: string;
  /** True when there is such an alert because of what a node says of users. */
  readonly isOfUsers?: true;
  readonly value?: number;
  readonly threshold?: number;
  readonly detail?: AlertDetail;
  /** How often the key was raised as far back as records are kept, this time included; every occurrence counts. */
  readonly raisedCount: number;
  /** True for a record that something is over: resolved from the start. */
  readonly isRecovery: boolean;
  readonly acked?: { readonly by: string; readonly atMs: number };
  readonly resolved?: { readonly by: "auto" | "operator"; readonly atMs: number };
}

/** The worse, the higher. */
export const RANKS: Readonly<Record<Severity, number>> = { info: 0, warning: 1, critical: 2 };

/**
 * The id of an alert: a ULID whose random part is a hash of what the alert is. So ids of alerts that visitors see do not depend on
 * how many there are that they do not see (W-09). Where they may not see the key it is random: of an address, a hash tells as much.
 */
export function alertId(alert: Omit<Alert, "id" | "revision">): string {
  const { key, type, severity, raisedCount, isRecovery, raisedAtMs } = alert;
  if (ALERT_KINDS[type].hidesKey === true) return ulid({ wallMs: () => raisedAtMs }, systemRandom);
  const digest = createHash("sha256").update(JSON.stringify([key, type, severity, raisedCount, isRecovery]));
  const bytes = digest.digest();
  return ulid({ wallMs: () => raisedAtMs }, { bytes: (count) => bytes.subarray(0, count) });
}
