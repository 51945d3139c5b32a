// Ends the sessions of people who were removed from the list of operators.
import type { AuditAct } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { OperatorPeople } from "./operator-people.ts";
import type { OperatorSessions } from "./operator-sessions.ts";

/** Interval of the check against the list. */
export const OPERATOR_LIST_CHECK_INTERVAL_MS = 5_000;

/** Dependencies of the check. */
export interface RemovedOperatorsDeps {
  readonly people: Pick<OperatorPeople, "listed">;
  readonly sessions: Pick<OperatorSessions, "endPeople">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly audit: (act: AuditAct) => void;
}

/**
 * Reads the list at an interval and ends the sessions of people who are not on it; the returned function
 * stops that. A list that is unreadable twice in a row ends all of them. Where a claim decides, sessions last
 * their full time.
 */
export function endSessionsOfRemovedOperators({
  people,
  sessions,
  clock,
  log,
  audit,
}: RemovedOperatorsDeps): () => void {
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
      // An editor may be replacing the file at this moment.
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
