// Checks a MetaServer's callers by header: node certificate, known ID token, or nothing (spec 5.6, D19).
import { isDoorSecret } from "#base/door-call.ts";
import { GroveError } from "#base/errors.ts";
import { RECEIVE_MESSAGE_MAX_BYTES } from "#base/limits.ts";
import { networkOf } from "#base/network.ts";
import { REQUEST_ID_HEADER, requestIdFrom } from "#base/request-scope.ts";
import { judgeDoorCertificate } from "#security/identity/door-certificate.ts";
import type { TokenVerifier } from "#security/identity/token-verifier.ts";
import type { ReceiveLimits } from "#wire/framing/limits.ts";
import type { CallGate, CallHead } from "#wire/grpc/call-gate.ts";
import { type Standing, unproven } from "#wire/grpc/standing.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { RootMoves } from "#wire/proto/gen/grove/v1/root_moves_pb.ts";
import { doorSpeakerFor } from "./door-speaker.ts";
import { mayControl, type NodeSpeakerDeps, requireCertificate } from "./node-speaker.ts";

/** Methods that users call with an ID token, and doors with an app password or with a browser's session. */
const USER_METHODS: ReadonlySet<string> = new Set([
  "GetRoots",
  "Navigate",
  "CreateAppPassword",
  "ListAppPasswords",
  "RevokeAppPassword",
  "ListBrowserSessions",
  "EndBrowserSessions",
  "GetNotices",
  "SetNotices",
]);
/** Methods of doors alone. */
const DOOR_METHODS: ReadonlySet<string> = new Set([
  "IssueTicket",
  "OpenDoorSession",
  "EndDoorSession",
  "LocateRoot",
]);
/** The method of nodes that doors may call too. */
const RENEW_METHOD = "RenewCertificate";
/** Methods of administrators, and of groups' managers, whose credential the operation itself checks. */
const ADMINISTRATORS_METHODS: ReadonlySet<string> = new Set([
  "GetUserStates",
  "KeepUserState",
  "ListFileServers",
  "CreateGroup",
  "ListGroups",
  "ChangeGroup",
  "DeleteGroup",
]);
/** The method that brings a join token in its body. */
const JOIN_METHOD = "JoinNode";

/** Names of users and nodes, one path of at most 4,096 bytes, or a page token that holds one. */
const NAMES: ReceiveLimits = { receiveMessageBytes: 16 * 1_024, receiveFields: 128 };

/** Room for an ID token. */
const USUAL: ReceiveLimits = { receiveMessageBytes: 64 * 1_024, receiveFields: 1_024 };

/** Limits of a request of each method; a registration lists all roots of a node. */
export const REQUEST_LIMITS = {
  getRoots: NAMES,
  navigate: NAMES,
  joinNode: NAMES,
  getUserStates: NAMES,
  keepUserState: NAMES,
  listFileServers: NAMES,
  createAppPassword: NAMES,
  listAppPasswords: NAMES,
  revokeAppPassword: NAMES,
  listBrowserSessions: NAMES,
  endBrowserSessions: NAMES,
  issueTicket: NAMES,
  openDoorSession: USUAL,
  endDoorSession: NAMES,
  getTicketNews: NAMES,
  locateRoot: NAMES,
  createGroup: NAMES,
  listGroups: NAMES,
  changeGroup: NAMES,
  deleteGroup: NAMES,
  getNotices: NAMES,
  setNotices: NAMES,
  exchangeUserStates: { receiveMessageBytes: RECEIVE_MESSAGE_MAX_BYTES, receiveFields: 8_192 },
  registerFileServer: { receiveMessageBytes: RECEIVE_MESSAGE_MAX_BYTES, receiveFields: 1_000_000 },
} as const;

/** Limits of all other methods. */
export const USUAL_REQUEST: ReceiveLimits = USUAL;

/** Dependencies of the gate. */
export interface MetaServerGateDeps extends NodeSpeakerDeps {
  readonly tokenVerifier: Pick<TokenVerifier, "known">;
  /** Called for calls that were refused by their headers. */
  readonly onRefused: (head: CallHead, error: unknown) => void;
}

/** Makes the gate. An unknown method is a control call and needs a node's certificate. */
export function metaServerGate(deps: MetaServerGateDeps): CallGate {
  const judge = (head: CallHead): Standing => {
    const network = networkOf(head.peer.address);
    const { service, name } = head.method;
    const isMove = service === RootMoves.typeName;
    const isUnproven = name === JOIN_METHOD || ADMINISTRATORS_METHODS.has(name);
    if (!isMove && (service !== MetaServer.typeName || isUnproven)) return unproven(network);
    if (DOOR_METHODS.has(name)) return doorStanding(head, deps);
    if (USER_METHODS.has(name)) {
      const isOfDoor = isDoorSecret(idTokenOf(head));
      return isOfDoor ? doorStanding(head, deps) : userStanding(head, network, deps);
    }
    // Mock mode needs no proof (spec 5.6).
    if (deps.mock) return { kind: "user", party: network };
    if (name === RENEW_METHOD && isDoor(head, deps)) return doorStanding(head, deps);
    const { nodeId, keyFingerprint } = requireCertificate(head, deps);
    return { kind: "node", party: nodeId ?? keyFingerprint };
  };
  return {
    judge,
    refused(head, error) {
      deps.onRefused(head, error);
      return [REQUEST_ID_HEADER, requestIdFrom(head.metadata.get(REQUEST_ID_HEADER))];
    },
    isNode: (peer) => mayControl(peer, deps),
  };
}

/** The ID token of a user's call, only as bearer metadata (D19). Throws TOKEN_REJECTED without one. */
export function idTokenOf({ metadata }: Pick<CallHead, "metadata">): string {
  const token = /^bearer +(\S+)$/i.exec(metadata.get("authorization") ?? "")?.[1];
  if (token === undefined) {
    throw new GroveError("TOKEN_REJECTED", "this call needs an ID token: authorization: Bearer …");
  }
  return token;
}

/** True for a caller with a door's certificate. */
function isDoor({ peer }: CallHead, { clock }: MetaServerGateDeps): boolean {
  const shown = { certificate: peer.certificate?.raw, authorized: peer.certificate?.authorized === true };
  return typeof judgeDoorCertificate(shown, clock.wallMs()) !== "string";
}

/** The standing of a door's call: each network of people behind a door has a share of its own. */
function doorStanding(head: CallHead, deps: MetaServerGateDeps): Standing {
  const door = doorSpeakerFor(head, deps);
  return { kind: "user", party: `door ${door.id} ${networkOf(door.address)}`, proof: door };
}

/** The standing of a user's call. An unverified token proves nothing: its verification is what costs. */
function userStanding(head: CallHead, network: string, { tokenVerifier }: MetaServerGateDeps): Standing {
  const known = tokenVerifier.known(idTokenOf(head));
  return known === undefined ? unproven(network) : { kind: "user", party: known.identity.username };
}
