// The specification's table of limits with the constants of src/base/limits.ts that implement its rows.

/** The rows of section 8, each with its constants and their values. */
export const SPEC_LIMITS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "Default per-user quota": { DEFAULT_QUOTA_BYTES: 16n * 1024n ** 3n },
  "Physical disk reserve": { DISK_RESERVE_BYTES: 20n * 1024n ** 3n },
  "Chunk size for transfers": { CHUNK_BYTES: 4_000_000 },
  "Session idle timeout": { SESSION_IDLE_TIMEOUT_MS: 15 * 60_000 },
  "Session absolute lifetime": { SESSION_LIFETIME_MS: 12 * 3_600_000 },
  "Sessions per user": { SESSIONS_PER_USER: 5 },
  "Sessions globally": { SESSIONS_GLOBAL: 10_000 },
  "Session sweep interval": { SESSION_SWEEP_INTERVAL_MS: 60_000 },
  "Admin session lifetime": { ADMIN_SESSION_LIFETIME_MS: 12 * 3_600_000 },
  "Token cache cap": { TOKEN_CACHE_CAP_MS: 2 * 3_600_000, TOKEN_CACHE_ENTRIES: 5_000 },
  "Poll interval": { POLL_INTERVAL_MS: 5_000 },
  "Node offline threshold": { NODE_OFFLINE_AFTER_MS: 30_000 },
  "Ring buffer": { HISTORY_SNAPSHOTS_PER_NODE: 720 },
  "Snapshot persistence": { SNAPSHOT_SAVE_INTERVAL_MS: 60_000 },
  "Node address re-read": { ADDRESS_REREAD_INTERVAL_MS: 10_000 },
  "Log lines": { LOG_LINES_MIN: 10, LOG_LINES_MAX: 1_000 },
  "Command history": { COMMAND_HISTORY_RECORDS: 100 },
  "Alert thresholds": {
    ALERT_THRESHOLDS: {
      storagePercent: { warning: 80, critical: 95 },
      temperatureCelsius: { warning: 65, critical: 85 },
      errorRatePercent: { warning: 5, critical: 20 },
      quotaPercent: { critical: 100 },
    },
  },
  "Node status thresholds": {
    NODE_STATUS_THRESHOLDS: {
      warning: { diskPercent: 80, temperatureCelsius: 65 },
      degraded: { diskPercent: 90, temperatureCelsius: 75 },
      critical: { diskPercent: 95, temperatureCelsius: 85 },
    },
  },
};

/** Names of the limits in the first table of the specification's section 8, in order. */
export function specificationLimits(specification: string): string[] {
  const section = /^## 8\. Limits\n([\s\S]*?)(?=^#)/m.exec(specification)?.[1] ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("|"));
  // Skips the heading and its rule.
  return rows.slice(2).map((row) => row.split("|")[1]?.trim() ?? "");
}
