// When notifications start and end, by type of alert (decision D11); alerts' records follow spec 3.1.
import type { AlertType } from "#wire/webapi/alert.ts";

/** Minimum number and duration of consecutive readings. */
export interface Sustained {
  /** Readings in a row. */
  readonly readings: number;
  /** Milliseconds from the first of them to the last, on the steady clock. */
  readonly forMs: number;
}

/** When one type of alert is raised, and when it counts as over. */
export interface NotificationRule {
  readonly raise: { readonly warning: Sustained; readonly critical: Sustained };
  /** Clear levels that the value must be below; without them or a value, the reading's level decides. */
  readonly clearBelow?: { readonly warning: number; readonly critical: number };
  /** Readings needed below the clear level: D11's "keep", or the good polls of a node that was away. */
  readonly clear: Sustained;
  /** True for types with a single clear reading, which counts for each round until the next bad one. */
  readonly clearComesOnce?: true;
}

const AT_ONCE: Sustained = { readings: 1, forMs: 0 };
const TWO_READINGS: Sustained = { readings: 2, forMs: 0 };
const lasting = (seconds: number): Sustained => ({ readings: 1, forMs: seconds * 1_000 });

/** A yes-or-no state: raised and cleared at once. */
const FACT: NotificationRule = { raise: { warning: AT_ONCE, critical: AT_ONCE }, clear: AT_ONCE };
/** A measured value that may move around its threshold. */
const MEASURED: NotificationRule = {
  raise: { warning: TWO_READINGS, critical: TWO_READINGS },
  clear: lasting(60),
};
/** An event: over when it does not repeat for ten minutes. */
export const HAPPENING: NotificationRule = {
  raise: { warning: AT_ONCE, critical: AT_ONCE },
  clear: lasting(600),
};

/** The rules. The first six rows are D11's table; the others follow from their subject. */
export const NOTIFICATION_RULES: Readonly<Record<AlertType, NotificationRule>> = {
  storage_warning: {
    raise: { warning: TWO_READINGS, critical: TWO_READINGS },
    clearBelow: { warning: 78, critical: 93 },
    clear: lasting(60),
  },
  temp_warning: {
    raise: { warning: lasting(30), critical: lasting(10) },
    clearBelow: { warning: 62, critical: 80 },
    clear: lasting(60),
  },
  // The rate covers the last 60 s itself, from 20 operations on (T4).
  error_spike: {
    raise: { warning: AT_ONCE, critical: AT_ONCE },
    clearBelow: { warning: 4, critical: 15 },
    clear: lasting(120),
  },
  // D11 has no keep time here, but a user who writes and deletes at 95 % would get a message every few
  // seconds.
  quota_exceeded: {
    raise: { warning: AT_ONCE, critical: AT_ONCE },
    clearBelow: { warning: 95, critical: 95 },
    clear: lasting(600),
    clearComesOnce: true,
  },
  node_offline: { raise: { warning: lasting(30), critical: lasting(30) }, clear: TWO_READINGS },
  metaserver_offline: { raise: { warning: lasting(30), critical: lasting(30) }, clear: AT_ONCE },
  service_restart: HAPPENING,
  node_online: FACT,
  ip_mismatch: HAPPENING,
  mock_token: HAPPENING,
  host_key_changed: HAPPENING,
  snapshot_reset: HAPPENING,
  action_failed: HAPPENING,
  login_failures: HAPPENING,
  audit_broken: HAPPENING,
  node_restored: HAPPENING,
  auth_mock: FACT,
  default_password: FACT,
  cert_expiring: FACT,
  corruption: FACT,
  storage_failed: FACT,
  storage_reserve: MEASURED,
  inodes_low: MEASURED,
  clock_skew: MEASURED,
  quota_drift: MEASURED,
  bad_metrics: MEASURED,
};

/**
 * What is told of a node that does not answer: its absence, and what that neither explains nor undoes. A node's
 * first answer reports attempts and restores, when it still counts as absent.
 */
export const TOLD_OF_ABSENT_NODES: ReadonlySet<AlertType> = new Set<AlertType>([
  "node_offline",
  "ip_mismatch",
  "mock_token",
  "host_key_changed",
  "login_failures",
  "audit_broken",
  "node_restored",
]);
