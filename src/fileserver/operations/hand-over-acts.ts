// The audit lines of roots that are handed over: one at the owner and one at whom it goes to, when it begins and when it is ended.
import type { AuditSink } from "#base/audit-act.ts";
import { type HandOver, isInForce } from "#base/hand-over.ts";
import type { UserState } from "#base/user-state.ts";

/** A decision about a user, and what was known before it. */
export interface Decided {
  readonly state: UserState;
  readonly before: UserState | undefined;
  /** Who ended what is not in it any more. */
  readonly endedBy: string;
  readonly nowMs: number;
  /** What else is to be known. */
  readonly detail: Readonly<Record<string, string>>;
}

/** Writes what is new and what is ended; what has come to its end by itself is not. */
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
