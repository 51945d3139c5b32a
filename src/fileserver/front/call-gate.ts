// Checks the callers of a FileServer by their headers: the session behind the token, or nothing (spec 5.3).
import { networkOf } from "#base/network.ts";
import { REQUEST_ID_HEADER, requestIdFrom } from "#base/request-scope.ts";
import { bearerToken, callerOf } from "#fileserver/operations/caller.ts";
import { PASSWORD_HASH_HEADER } from "#fileserver/operations/quota-operations.ts";
import type { ServingState } from "#fileserver/operations/serving-state.ts";
import type { SessionTable } from "#security/sessions/session-table.ts";
import type { CallGate, CallHead } from "#wire/grpc/call-gate.ts";
import { type Standing, unproven } from "#wire/grpc/standing.ts";

/** Dependencies of the gate. */
export interface FileServerGateDeps {
  readonly sessions: SessionTable;
  readonly state: ServingState;
  /** Full name of the service that needs sessions; others, such as health, need none. */
  readonly service: string;
  /** Its methods that bring credentials of another kind. */
  readonly exempt: ReadonlySet<string>;
  /** Those that also take the administrator's password instead of a session; the operation compares it. */
  readonly byPassword: ReadonlySet<string>;
  /** Called for every call, accepted or refused. */
  readonly onCall: (head: CallHead) => void;
  /** Called for the refused ones. */
  readonly onRefused: (head: CallHead, error: unknown) => void;
}

/** Makes the gate. An accepted caller's session stays with the call, as `standing.proof`. */
export function fileServerGate(deps: FileServerGateDeps): CallGate {
  const { sessions, state } = deps;
  const userOf = (head: CallHead): Standing => {
    const caller = callerOf(head, sessions, state);
    return { kind: "user", party: caller.identity.username, proof: caller };
  };
  const isByPassword = ({ method, metadata }: CallHead): boolean =>
    deps.byPassword.has(method.name) &&
    metadata.get(PASSWORD_HASH_HEADER) !== undefined &&
    metadata.get("authorization") === undefined;
  const unprovenOf = (head: CallHead): Standing => unproven(networkOf(head.peer.address));
  const judge = (head: CallHead): Standing => {
    deps.onCall(head);
    if (head.method.service !== deps.service) return unprovenOf(head);
    state.requireServing();
    if (isByPassword(head)) return unprovenOf(head);
    if (!deps.exempt.has(head.method.name)) return userOf(head);
    // The operation reports an invalid session: another credential may have come with it.
    try {
      return bearerToken(head)?.startsWith(SESSION_TOKEN) === true ? userOf(head) : unprovenOf(head);
    } catch {
      return unprovenOf(head);
    }
  };
  return {
    judge,
    refused(head, error) {
      deps.onRefused(head, error);
      return [REQUEST_ID_HEADER, requestIdFrom(head.metadata.get(REQUEST_ID_HEADER))];
    },
    isNode: () => false,
  };
}

/** Prefix of session tokens, which ID tokens lack. */
const SESSION_TOKEN = "sst_";
