// Logs each call that did not end well: failures of the node for operators, refusals for a closer look.
import type { AuditSink } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { type ErrorCode, type GroveError, isGroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import { LogSampler } from "#base/log-sampler.ts";
import { networkOf } from "#base/network.ts";
import { settled } from "#base/settled.ts";
import { SlidingWindow } from "#base/sliding-window.ts";
import type { CallingDoor, DoorPeers } from "#fileserver/doors/door-peer.ts";
import type { OperationMeter } from "#fileserver/operations/operation-meter.ts";
import { outcomeOf } from "#fileserver/operations/operation-outcome.ts";
import { Code, codeName, StatusError } from "#wire/framing/status.ts";
import type { CallHead } from "#wire/grpc/call-gate.ts";
import type { CallContext, ServerInterceptor } from "#wire/grpc/handler.ts";

/** Refusals that come in floods under load; an operator sees a few lines of each. */
const FOR_LOAD = ["OVERLOADED", "RATE_LIMITED"] as const satisfies readonly ErrorCode[];

/** Calls outside content, names and trash, whose operations count themselves; error rates need both (T4). */
export const CALLS_APART: ReadonlySet<string> = new Set([
  "RegisterClient",
  "EndSession",
  "ListSessions",
  "GetQuota",
  "SetQuota",
  "SetUserState",
  "ListUserStates",
]);

/** Receives calls that did not end well. */
export interface CallLog {
  /** Calls refused by their headers alone. */
  readonly refused: (head: CallHead, error: unknown) => void;
  /** Calls that ran. */
  readonly interceptor: ServerInterceptor;
}

/** Dependencies of the log. */
export interface CallLogDeps {
  readonly log: Logger;
  readonly meter: Pick<OperationMeter, "callDone" | "callFailed">;
  readonly clock: Clock;
  /** Tells for which person's address a door calls. */
  readonly peers: Pick<DoorPeers, "of">;
  /** Receives what doors try beyond their people's credentials. */
  readonly audit: AuditSink;
}

/** Audited refusals of people at one network behind doors; more are in the log alone. */
const AUDITED_PER_MINUTE = 20;

/** Logs and counts; no line holds a call's token or content. Repeated lines are sampled. */
export function callLog({ log, meter, clock, peers, audit }: CallLogDeps): CallLog {
  const sampler = new LogSampler(clock);
  const audited = new SlidingWindow(clock, { count: AUDITED_PER_MINUTE, windowMs: 60_000 });
  const auditDoor = (door: CallingDoor, method: string, user: string, cause: GroveError): void => {
    if (cause.metadata["scope"] !== "left" && cause.code !== "IP_MISMATCH") return;
    if (audited.take(door.address) > 0) return;
    const detail = { address: door.address, method, reason: cause.code, what: cause.message };
    audit({ act: "door.refused", actor: user, subject: `door ${door.id}`, detail });
  };
  const done = (context: CallContext): void => {
    if (CALLS_APART.has(context.method.name)) meter.callDone();
  };
  const refused = (context: CallHead, error: unknown): void => {
    meter.callFailed(error);
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    const reason = isGroveError(cause)
      ? cause.code
      : codeName(error instanceof StatusError ? error.code : Code.UNKNOWN);
    const isForLoad = isGroveError(cause, ...FOR_LOAD);
    const door = peers.of(context);
    const address = door?.address ?? context.peer.address;
    const method = context.method.name;
    if (door !== undefined && isGroveError(cause)) auditDoor(door, method, userOf(context), cause);
    const sampled = sampler.take(isForLoad ? reason : `${reason} ${method} ${networkOf(address)}`);
    if (sampled === undefined) return;
    const fields = { method, address, reason, error: errorText(cause), ...sampled };
    if (isForLoad) log.warn("call_refused_for_load", fields);
    else if (outcomeOf(error) === "failed") log.warn("call_failed", fields);
    else log.debug("call_refused", fields);
  };
  const interceptor: ServerInterceptor = (context, next) =>
    settled(next, (error) => (error === undefined ? done(context) : refused(context, error)));
  return { refused, interceptor };
}

/** The user of a call's session; "unknown" for a call that was refused before. */
function userOf(context: CallHead): string {
  const { standing } = context as Partial<CallContext>;
  return standing?.kind === "user" ? standing.party : "unknown";
}
