// The commands of the metadata store about MetaServers' security events, as plans (spec 5.7, D22).
import { GroveError } from "#base/errors.ts";
import { dropSetting, putSetting } from "#metaserver/sql/settings.ts";
import { all, type Plan } from "#metaserver/sql/sql-plan.ts";
import type { SecurityReport } from "./directory.ts";

/** MetaServers whose security events the metadata store keeps. */
export const METASERVERS_HEARD_MAX = 64;
/** Bytes of one MetaServer's security events in the store: 100 of them. */
export const SECURITY_REPORT_MAX_BYTES = 65_536;

/** A setting, since a new table would shut out every MetaServer and console of the version before. */
const PREFIX = "security_events:";

/** The last report of each MetaServer, by its name. */
export function* securityReports(): Plan<SecurityReport[]> {
  const rows = yield* all<{ key: string; value: string }>(
    "SELECT key, value FROM settings WHERE key LIKE ? ORDER BY key LIMIT ?",
    `${PREFIX}%`,
    METASERVERS_HEARD_MAX,
  );
  return rows.map(({ key, value }) => ({ source: key.slice(PREFIX.length), document: value }));
}

/** Replaces a MetaServer's last report; when there are too many, that of the one silent for longest. */
export function* putSecurityReport({ source, document }: SecurityReport): Plan<void> {
  if (!/^[\u0021-\u007e]{1,300}$/.test(source) || Buffer.byteLength(document) > SECURITY_REPORT_MAX_BYTES)
    throw new GroveError("BAD_ARGUMENT", "that is no report of security events");
  const others = (yield* securityReports()).filter((report) => report.source !== source);
  if (others.length >= METASERVERS_HEARD_MAX) {
    const silent = others.reduce((a, b) => (newestIn(b) < newestIn(a) ? b : a));
    yield* dropSetting(PREFIX + silent.source);
  }
  yield* putSetting(PREFIX + source, document);
}

/** Ids of events are ordered by time; an invalid report counts as the oldest. */
function newestIn({ document }: SecurityReport): string {
  return /.*"id":"([^"]*)"/.exec(document)?.[1] ?? "";
}
