// When an alert is told and when its end is: one row per type of alert (decision D11). Records follow spec 3.1; this is for notices alone.
import type { AlertType } from "#wire/webapi/alert.ts";

/** How often in a row, and for how long, something must have been seen. */
export interface Sustained {
  /** Readings in a row. */
  readonly readings: number;
  /** Milliseconds from the first of them to the last, on the steady clock. */
  readonly forMs: number;
}

/** When one type of alert is raised, and when it counts as over. */
export interface NotificationRule {
  readonly raise: { readonly warning: Sustained; readonly critical: Sustained };
  /** The value must be below these, the clear levels; without them, or without a value, the level of the reading decides. */
  readonly clearBelow?: { readonly warning: number; readonly critical: number };
  /** How long it must have been below: D11's "keep", and the good polls of a node that was away. */
  readonly clear: Sustained;
  /** A clear reading comes once and then none until it is bad again: until then it stands for each round. */
  readonly clearComesOnce?: true;
}

const AT_ONCE: Sustained = { readings: 1, forMs: 0 };
const TWO_READINGS: Sustained = { readings: 2, forMs: 0 };
const lasting = (seconds: number): Sustained => ({ readings: 1, forMs: seconds * 1_000 });

/** Something that is so or is not: told at once, over at once. */
const FACT: NotificationRule = { raise: { warning: AT_ONCE, critical: AT_ONCE }, clear: AT_ONCE };
/** Something measured that may wander across its threshold. */
const MEASURED: NotificationRule = {
  raise: { warning: TWO_READINGS, critical: TWO_READINGS },
  clear: lasting(60),
};
/** Something that happens and does not last: over when it has not happened again for ten minutes. */
export const HAPPENING: NotificationRule = {
  raise: { warning: AT_ONCE, critical: AT_ONCE },
  clear: lasting(600),
};

/** The rules. The first six rows are D11's table; the others follow from what they are about. */
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
  // The rate is itself that of the last 60 s, from 20 operations on (T4).
  error_spike: {
    raise: { warning: AT_ONCE, critical: AT_ONCE },
    clearBelow: { warning: 4, critical: 15 },
    clear: lasting(120),
  },
  // D11 keeps it for no time at all; a user who writes and deletes at 95 % would then hear of it every few seconds.
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
