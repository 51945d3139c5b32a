// Judges the callers of a FileServer by the headers of their calls: the session behind the token, or nothing (spec 5.3).
import { networkOf } from "#base/network.ts";
import { REQUEST_ID_HEADER, requestIdFrom } from "#base/request-scope.ts";
import { bearerToken, callerOf } from "#fileserver/operations/caller.ts";
import { PASSWORD_HASH_HEADER } from "#fileserver/operations/quota-operations.ts";
import type { ServingState } from "#fileserver/operations/serving-state.ts";
import type { SessionTable } from "#security/sessions/session-table.ts";
import type { CallGate, CallHead } from "#wire/grpc/call-gate.ts";
import { type Standing, unproven } from "#wire/grpc/standing.ts";

/** What the gate works with. */
export interface FileServerGateDeps {
  readonly sessions: SessionTable;
  readonly state: ServingState;
  /** Full name of the service that needs sessions; others, such as health, need none. */
  readonly service: string;
  /** Its methods that bring credentials of another kind. */
  readonly exempt: ReadonlySet<string>;
  /** Those that also take the administrator's password in the place of a session; the operation compares it. */
  readonly byPassword: ReadonlySet<string>;
  /** Hears of every call, whatever becomes of it. */
  readonly onCall: (head: CallHead) => void;
  /** Hears of the refused ones. */
  readonly onRefused: (head: CallHead, error: unknown) => void;
}

/** Makes the gate. Who is let in keeps their session with the call, as `standing.proof`. */
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
  const judge = (head: CallHead): Standing => {
    deps.onCall(head);
    const network = networkOf(head.peer.address);
    if (head.method.service !== deps.service) return unproven(network);
    state.requireServing();
    if (isByPassword(head)) return unproven(network);
    if (!deps.exempt.has(head.method.name)) return userOf(head);
    // What is wrong with a session is for the operation to say: it may have come with another credential.
    try {
      return bearerToken(head)?.startsWith(SESSION_TOKEN) === true ? userOf(head) : unproven(network);
    } catch {
      return unproven(network);
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

/** What session tokens begin with, and ID tokens do not. */
const SESSION_TOKEN = "sst_";
