// The audit lines of a root's hand-over, one for the owner and one for the heir, at its begin and its end.
import type { AuditSink } from "#base/audit-act.ts";
import { type HandOver, isInForce } from "#base/hand-over.ts";
import type { UserState } from "#base/user-state.ts";

/** A decision about a user, and what was known before it. */
export interface Decided {
  readonly state: UserState;
  readonly before: UserState | undefined;
  /** Username of the administrator whose decision ends those hand-overs that the new state lacks. */
  readonly endedBy: string;
  readonly nowMs: number;
  /** Further fields of the audit line. */
  readonly detail: Readonly<Record<string, string>>;
}

/** Writes hand-overs that begin and those that are ended; expired ones write nothing. */
export function auditHandOvers(audit: AuditSink, decided: Decided): void {
  const { state, before, endedBy, nowMs, detail } = decided;
  const now = state.handOvers ?? [];
  const then = before?.handOvers ?? [];
  for (const handOver of then) {
    if (now.some(({ to }) => to === handOver.to) || !isInForce(handOver, nowMs)) continue;
    const { to, reason } = handOver;
    const facts = { reason, ...detail };
    audit({ act: "user.hand_over_end", actor: endedBy, subject: state.username, detail: { to, ...facts } });
    audit({
      act: "user.inherit_end",
      actor: endedBy,
      subject: to,
      detail: { root: state.username, ...facts },
    });
  }
  for (const handOver of now) {
    if (then.some((known) => isSame(known, handOver))) continue;
    const { to, mayDelete, reason, untilMs, setBy } = handOver;
    const until = new Date(untilMs).toISOString();
    const facts = { may_delete: mayDelete, reason, until, ...detail };
    audit({ act: "user.hand_over", actor: setBy, subject: state.username, detail: { to, ...facts } });
    audit({ act: "user.inherit", actor: setBy, subject: to, detail: { root: state.username, ...facts } });
  }
}

function isSame(one: HandOver, other: HandOver): boolean {
  return (
    one.to === other.to &&
    one.mayDelete === other.mayDelete &&
    one.reason === other.reason &&
    one.untilMs === other.untilMs
  );
}
