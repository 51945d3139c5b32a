// Ends the sessions of operators who signed in by name and were taken off the list of operators since.
import type { AuditAct } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { OperatorPeople } from "./operator-people.ts";
import type { OperatorSessions } from "./operator-sessions.ts";

/** How often the console looks whether an operator who signed in by name is still on the list. */
export const OPERATOR_LIST_CHECK_INTERVAL_MS = 5_000;

/** What it needs. */
export interface OffListDeps {
  readonly people: Pick<OperatorPeople, "listed">;
  readonly sessions: Pick<OperatorSessions, "endPeople">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly audit: (act: AuditAct) => void;
}

/**
 * Reads the list again and again, and ends the sessions of whoever is not on it; the answer stops that. A list that cannot be read twice in a
 * row lets nobody stay. Of operators by a claim nobody hears who has lost it: their sessions last as long as they last.
 */
export function endSessionsOffList({ people, sessions, clock, log, audit }: OffListDeps): () => void {
  const { listed } = people;
  if (listed === undefined) return () => undefined;
  let isUnreadable = false;
  let isLooking = false;
  const look = async (): Promise<void> => {
    if (isLooking) return;
    isLooking = true;
    try {
      const subjects = await listed().catch((error: unknown) => {
        log.error("operators_unreadable", { error: errorText(error) });
        return undefined;
      });
      // An editor may be putting another file in its place just now.
      const mayWait = subjects === undefined && !isUnreadable;
      isUnreadable = subjects === undefined;
      if (mayWait) return;
      for (const { id } of sessions.endPeople((subject) => subjects?.has(subject) === true)) {
        log.info("signed_out", { session: id, why: "no longer an operator" });
        const detail = { session: id, why: "no longer on the list of operators" };
        audit({ act: "operator.close", actor: "console", subject: "console", detail });
      }
    } finally {
      isLooking = false;
    }
  };
  return clock.every(OPERATOR_LIST_CHECK_INTERVAL_MS, () => void look());
}
