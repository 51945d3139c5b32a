// The file of alerts: records as in the API, with the state machine's other data (spec 2.6, failure A-10).
import { join } from "node:path";
import { z } from "zod";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { type SetAsideDeps, setAside } from "#os/set-aside.ts";
import { readGenerations, readStateFile } from "#os/state-file.ts";
import { ALERT_TYPES, alertRecord, SEVERITIES } from "#wire/webapi/alert.ts";
import type { Alert } from "./alert.ts";
import { recordOf } from "./alert-record.ts";
import type { AlertMachineState } from "./alert-state-machine.ts";

/** Name of the file in the console's data folder (spec 2.6). */
export const ALERTS_FILE = "admin_alerts.json";

const storedAlert = alertRecord.extend({
  revision: z.int(),
  is_recovery: z.literal(true).optional(),
  is_of_users: z.literal(true).optional(),
  last_at: z.int().optional(),
  detail: z.record(z.string(), z.union([z.string(), z.number()])).optional(),
});
type StoredAlert = z.infer<typeof storedAlert>;

const alertsFile = z.strictObject({
  schema: z.literal(1),
  alerts: z.array(storedAlert),
  muted: z.array(
    z.strictObject({
      key: z.string(),
      type: z.enum(ALERT_TYPES),
      severity: z.enum(SEVERITIES),
      node_id: z.string().optional(),
    }),
  ),
  /** Last security event of each node that was counted. */
  security_marks: z.record(z.string(), z.string()),
});

/** The content of the file. */
export interface StoredAlerts {
  readonly state: AlertMachineState;
  readonly securityMarks: Map<string, string>;
}

/** The result of reading the file at the start. */
export interface LoadedAlerts extends StoredAlerts {
  /** New path of a damaged file; undefined without damage. */
  readonly setAsideAs: string | undefined;
  /** True when the previous generation replaced it. */
  readonly isPrevious: boolean;
}

/** The file of alerts. It caches each alert's text until the alert changes. */
export class AlertsFile {
  readonly #path: string;
  #texts = new Map<string, { readonly revision: number; readonly text: string }>();

  constructor(folder: string) {
    this.#path = join(folder, ALERTS_FILE);
  }

  /**
   * Reads the file. Sets a damaged one aside as `.corrupt-<unix seconds>` and uses the previous generation if
   * it is whole. Throws BAD_ARGUMENT for a newer version's file, the system's error when it cannot be read.
   */
  async read(deps: SetAsideDeps): Promise<LoadedAlerts> {
    const { content, current } = await readGenerations(this.#path, readStored);
    const setAsideAs = current === "broken" ? await setAside(this.#path, deps) : undefined;
    const isPrevious = content !== undefined && current !== "sound";
    return {
      ...(content ?? { state: { alerts: [], muted: [] }, securityMarks: new Map() }),
      setAsideAs,
      isPrevious,
    };
  }

  /** Replaces the file; resolves when it is on stable storage. */
  async write({ state, securityMarks }: StoredAlerts): Promise<void> {
    const texts = new Map<string, { readonly revision: number; readonly text: string }>();
    const rows: string[] = [];
    for (const alert of state.alerts) {
      const known = this.#texts.get(alert.id);
      const entry =
        known?.revision === alert.revision
          ? known
          : { revision: alert.revision, text: JSON.stringify(storedOf(alert)) };
      texts.set(alert.id, entry);
      rows.push(entry.text);
    }
    this.#texts = texts;
    const muted = state.muted.map(({ nodeId, ...rest }) => ({ ...rest, node_id: nodeId }));
    const marks = JSON.stringify(Object.fromEntries(securityMarks));
    const text = `{"schema":1,"alerts":[\n${rows.join(",\n")}\n],"muted":${JSON.stringify(muted)},"security_marks":${marks}}\n`;
    await writeFileAtomic(this.#path, text, { keepPrevious: true });
  }
}

async function readStored(path: string): Promise<StoredAlerts | "missing" | "broken"> {
  const kept = await readStateFile(path, alertsFile);
  if (typeof kept === "string") return kept;
  const { alerts, muted, security_marks: marks } = kept;
  return {
    state: {
      alerts: alerts.map(alertOf),
      muted: muted.map(({ node_id: nodeId, ...rest }) => ({
        ...rest,
        ...(nodeId === undefined ? {} : { nodeId }),
      })),
    },
    securityMarks: new Map(Object.entries(marks)),
  };
}

function storedOf(alert: Alert): StoredAlert {
  const { revision, isRecovery, isOfUsers, lastAtMs, detail } = alert;
  return {
    ...recordOf(alert),
    revision,
    ...(isRecovery ? { is_recovery: true } : {}),
    ...(isOfUsers === undefined ? {} : { is_of_users: isOfUsers }),
    ...(lastAtMs === undefined ? {} : { last_at: Math.floor(lastAtMs / 1000) }),
    ...(detail === undefined ? {} : { detail }),
  };
}

/** Texts are not read, because they are made from the facts. */
function alertOf(stored: StoredAlert): Alert {
  const { id, revision, key, type, severity, value, threshold, username, detail } = stored;
  const alert: { -readonly [Name in keyof Alert]: Alert[Name] } = {
    id,
    revision,
    key,
    type,
    severity,
    raisedAtMs: stored.timestamp * 1000,
    raisedCount: stored.raised_count,
    isRecovery: stored.is_recovery === true,
  };
  if (stored.last_at !== undefined) alert.lastAtMs = stored.last_at * 1000;
  if (stored.node_id !== undefined) alert.nodeId = stored.node_id;
  if (stored.node_name !== undefined) alert.nodeName = stored.node_name;
  if (username !== undefined) alert.username = username;
  if (stored.is_of_users !== undefined) alert.isOfUsers = stored.is_of_users;
  if (value !== undefined) alert.value = value;
  if (threshold !== undefined) alert.threshold = threshold;
  if (detail !== undefined) alert.detail = detail;
  if (stored.acked_by !== undefined)
    alert.acked = { by: stored.acked_by, atMs: (stored.acked_at ?? 0) * 1000 };
  if (stored.resolved) {
    alert.resolved = {
      by: stored.resolved_by ?? "auto",
      atMs: (stored.resolved_at ?? stored.timestamp) * 1000,
    };
  }
  return alert;
}
