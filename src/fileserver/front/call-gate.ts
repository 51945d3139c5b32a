// Checks the callers of a FileServer by their headers: the session behind the token, or nothing (spec 5.3).
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { networkOf } from "#base/network.ts";
import { REQUEST_ID_HEADER, requestIdFrom } from "#base/request-scope.ts";
import { bearerToken, type CallerTables, callerOf } from "#fileserver/operations/caller.ts";
import { PASSWORD_HASH_HEADER } from "#fileserver/operations/quota-operations.ts";
import type { ServingState } from "#fileserver/operations/serving-state.ts";
import { judgeCertificate } from "#security/identity/certificate-rule.ts";
import type { CallGate, CallHead } from "#wire/grpc/call-gate.ts";
import { type Standing, unproven } from "#wire/grpc/standing.ts";

/** Dependencies of the gate. */
export interface FileServerGateDeps {
  readonly callers: CallerTables;
  readonly state: ServingState;
  /** Full name of the service that needs sessions; others, such as health, need none. */
  readonly service: string;
  /** The service that needs a node's certificate; in mock mode its calls prove themselves by a secret. */
  readonly nodes: {
    readonly service: string;
    readonly mock: boolean;
    readonly clock: Pick<Clock, "wallMs">;
  };
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
  const { callers, state } = deps;
  const userOf = (head: CallHead): Standing => {
    const caller = callerOf(head, callers, state);
    if (caller.identity.link !== undefined && !LINK_METHODS.has(head.method.name)) throw notByLink();
    return { kind: "user", party: caller.identity.username, proof: caller };
  };
  const isByPassword = ({ method, metadata }: CallHead): boolean =>
    deps.byPassword.has(method.name) &&
    metadata.get(PASSWORD_HASH_HEADER) !== undefined &&
    metadata.get("authorization") === undefined;
  // People behind a door have shares of their own, since the door proves where each of them is.
  const unprovenOf = (head: CallHead): Standing =>
    unproven(networkOf(callers.peers.of(head)?.address ?? head.peer.address));
  const judge = (head: CallHead): Standing => {
    deps.onCall(head);
    if (head.method.service === deps.nodes.service) return nodeStanding(head, deps);
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

/** The node behind the certificate. Throws CLIENT_CERT_REQUIRED. */
function nodeStanding(head: CallHead, { nodes, state }: FileServerGateDeps): Standing {
  state.requireServing();
  if (nodes.mock) return { kind: "user", party: networkOf(head.peer.address) };
  const shown = head.peer.certificate;
  const { allowed, nodeId, keyFingerprint, reason } = judgeCertificate(
    { certificate: shown?.raw, authorized: shown?.authorized === true, problem: shown?.problem },
    nodes.clock.wallMs(),
  );
  if (allowed && keyFingerprint !== undefined) return { kind: "node", party: nodeId ?? keyFingerprint };
  throw new GroveError(
    "CLIENT_CERT_REQUIRED",
    `this call needs a client certificate of this cluster; the one shown ${reason ?? "is not allowed"}`,
    { metadata: { certificate: reason ?? "" } },
  );
}

/** What visitors by links call; policy decides what each of them may. */
const LINK_METHODS: ReadonlySet<string> = new Set(["GetAttr", "ListDir", "DownloadFile", "UploadFile"]);

function notByLink(): GroveError {
  return new GroveError("NOT_SHARED", "permission denied: this link does not let you do that");
}

/** Prefix of session tokens, which ID tokens lack. */
const SESSION_TOKEN = "sst_";
