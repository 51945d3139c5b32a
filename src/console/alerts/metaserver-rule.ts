// The rule for MetaServers: offline after 30 s of silence; only a warning while another one answers.
import { alertKey } from "./alert-kinds.ts";
import type { Condition } from "./condition.ts";

/** A MetaServer as the console sees it. */
export interface MetaServerReading {
  /** host:port of its gRPC. */
  readonly address: string;
  /** True before its first answer, and after a poll without one. */
  readonly isLate: boolean;
  /** True after 30 s without an answer. */
  readonly isOffline: boolean;
  /** Wall time of its last answer; 0 before the first. */
  readonly lastSeenWallMs: number;
  /** Why it does not answer; undefined while it does. */
  readonly reason: string | undefined;
  /** Whole days until its certificate ends, and the authority's; null while unknown, and without one. */
  readonly certDaysLeft: number | null;
  readonly authorityDaysLeft: number | null;
}

/**
 * The conditions of all MetaServers. `sinceUnix` gives the last answer before the open alert of a key. Keys
 * in `standing` whose addresses are no longer watched are over.
 */
export function metaServerConditions(
  readings: readonly MetaServerReading[],
  nowUnix: number,
  { sinceUnix, standing }: { sinceUnix: (key: string) => unknown; standing: Iterable<string> },
): Condition[] {
  const answering = readings.filter(({ isLate }) => !isLate).length;
  const found = readings.map((reading): Condition => {
    const { address, isLate, isOffline, lastSeenWallMs, reason } = reading;
    const about = aboutMetaServer(address);
    const told = sinceUnix(about.key);
    const since = typeof told === "number" ? told : 0;
    if (isOffline) {
      const detail = {
        address,
        others: answering,
        // An earlier console may have heard it last.
        last_seen: Math.floor(lastSeenWallMs / 1_000) || since,
        ...(reason === undefined ? {} : { reason }),
      };
      return { ...about, level: answering > 0 ? "warning" : "critical", detail };
    }
    if (isLate) return { ...about, level: "unknown" };
    const away = since > 0 ? { away_seconds: Math.max(0, nowUnix - since) } : {};
    return { ...about, level: "clear", detail: { address, ...away } };
  });
  const watched = new Set(found.map(({ key }) => key));
  const prefix = alertKey("metaserver_offline", "");
  for (const key of standing) {
    if (!key.startsWith(prefix) || watched.has(key)) continue;
    const address = key.slice(prefix.length);
    found.push({ ...aboutMetaServer(address), level: "clear", detail: { address, unwatched: 1 } });
  }
  return found;
}

function aboutMetaServer(address: string): Pick<Condition, "key" | "type"> {
  return { key: alertKey("metaserver_offline", address), type: "metaserver_offline" };
}
