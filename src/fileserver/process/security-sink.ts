// Sends a FileServer's security events to the console's list, the audit log and the log (D22).

import type { Logger } from "#base/log.ts";
import { currentRequestId } from "#base/request-scope.ts";
import type { SecurityEventSink } from "#base/security-event.ts";
import type { AuditLog } from "#security/audit/audit-log.ts";
import type { SecurityEvents } from "#telemetry/security-events.ts";

/**
 * Takes reports of events. A flood of one attempt is one event, with a line at its start and each tenfold.
 */
export function securityEventSink(
  events: SecurityEvents,
  auditLog: AuditLog,
  log: Logger,
): SecurityEventSink {
  return (facts) => {
    const event = events.record(facts);
    if (event.count !== (facts.count ?? 1) && !/^10+$/.test(String(event.count))) return;
    auditLog.append({
      act: "security",
      actor: event.username ?? "unknown",
      subject: event.type,
      request: currentRequestId(),
      detail: {
        fatal: event.fatal,
        ip_bound: event.ip_bound ?? undefined,
        ip_seen: event.ip_seen ?? undefined,
        count: event.count,
      },
    });
    log[event.fatal ? "error" : "warn"]("security_event", {
      id: event.id,
      type: event.type,
      fatal: event.fatal,
      user: event.username,
      ip_bound: event.ip_bound,
      ip_seen: event.ip_seen,
      count: event.count,
    });
  };
}
