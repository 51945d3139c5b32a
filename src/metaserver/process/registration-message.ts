// Checks a FileServer's registration message and converts it into the store's terms.
import { GroveError } from "#base/errors.ts";
import {
  DISK_RESERVE_BYTES,
  ISSUER_MAX_LENGTH,
  NODE_LABEL_MAX_LENGTH,
  SUBJECT_MAX_LENGTH,
} from "#base/limits.ts";
import { canonicalUsername, joinPath, splitPath } from "#base/names.ts";
import { checkedFileServerAddress } from "#base/node-id.ts";
import { bareIssuer } from "#base/verified-identity.ts";
import type { HeldRoot, NodeRegistration, RegistrationPage } from "#metaserver/directory/directory.ts";
import type { Speaker } from "#metaserver/directory/node-caller.ts";
import type { Subject } from "#metaserver/directory/subject.ts";
import type { RegisterFileServerRequest, RootInfo } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";

/** Maximum of SQLite and PostgreSQL; no disk and no version comes near. */
const STORED_MAX = 2n ** 63n - 1n;
const LABEL = /^[\u0021-\u007e]+$/;

/** Converts a registration. Throws BAD_ARGUMENT with the name of the wrong field. */
export function toRegistration(message: RegisterFileServerRequest, speaker: Speaker): NodeRegistration {
  return {
    fsId: message.fsId,
    name: displayName(message.name === "" ? message.fsId : message.name),
    address: checkedFileServerAddress(message.grpcAddr),
    softwareVersion: label("version", message.version, { mayBeEmpty: true }),
    clusterId: label("cluster_id", message.clusterId, { mayBeEmpty: true }),
    instanceId: label("instance_id", message.instanceId),
    lastEpoch: epochOf(message.lastEpoch),
    knownEpoch: message.knownEpoch === undefined ? undefined : epochOf(message.knownEpoch),
    dataId: label("data_id", message.dataId),
    predecessorId: label("predecessor_id", message.predecessorId, { mayBeEmpty: true }),
    diskTotalBytes: storedBytes(message.diskTotal),
    diskFreeBytes: storedBytes(message.diskFree),
    diskReserveBytes: storedBytes(message.diskReserve ?? DISK_RESERVE_BYTES),
    roots: message.roots.map(toHeldRoot),
    departed: message.departed.map(({ rootId, fsId, moveId }) => ({
      rootId: label("root_id", rootId),
      target: label("fs_id", fsId),
      moveId: label("move_id", moveId),
    })),
    page: toPage(message),
    namesVersion: namesVersionOf(message),
    ...(message.sharedEngine ? { onEngine: true as const } : {}),
    speaker,
  };
}

function toPage({ registration, page, more }: RegisterFileServerRequest): RegistrationPage | undefined {
  if (registration === 0n && page === 0 && !more) return undefined;
  if (registration === 0n)
    throw new GroveError("BAD_ARGUMENT", "pages need the number of their registration");
  return { registration: storedVersion("registration", registration), page, isLast: !more };
}

interface NamesVersion {
  readonly namesVersion?: bigint | undefined;
}

/** The version of names that a node states. Throws BAD_ARGUMENT beyond 2^63 - 1. */
export function namesVersionOf({ namesVersion }: NamesVersion): bigint | undefined {
  return namesVersion === undefined ? undefined : storedVersion("names_version", namesVersion);
}

/** Cuts byte counts to the store's maximum, since only their order matters. */
export function storedBytes(bytes: bigint): bigint {
  return bytes < STORED_MAX ? bytes : STORED_MAX;
}

/** A version or epoch as the store keeps it. Throws BAD_ARGUMENT beyond 2^63 - 1. */
export function storedVersion(field: string, version: bigint): bigint {
  if (version <= STORED_MAX) return version;
  throw new GroveError("BAD_ARGUMENT", `${field} is larger than any that was given out`);
}

/** Registrations that an id may ever have; a higher number is invented. */
const EPOCH_MAX = 2n ** 52n;

/** An epoch as a number. Throws BAD_ARGUMENT beyond 2^52. */
export function epochOf(epoch: bigint): number {
  if (epoch <= EPOCH_MAX) return Number(epoch);
  throw new GroveError("BAD_ARGUMENT", "epoch is larger than any that was given out");
}

function toHeldRoot(root: RootInfo): HeldRoot {
  return {
    owner: canonicalUsername(root.owner),
    rootId: label("root_id", root.rootId),
    version: storedVersion("version", root.version),
    grants: root.grants.map((grant) => ({
      path: joinPath(splitPath(grant.path)),
      user: canonicalUsername(grant.user),
    })),
    subject: toSubject(root.issuer, root.subject, storedVersion("subject_version", root.subjectVersion)),
    number: root.rootNumber === 0 ? undefined : root.rootNumber,
    ...(root.arrival === undefined ? {} : { arrival: label("arrival", root.arrival, { mayBeEmpty: true }) }),
    ...(root.leaseEpoch === 0n ? {} : { leaseEpoch: storedVersion("lease_epoch", root.leaseEpoch) }),
  };
}

/** The person of a message; undefined for mock tokens, which name none. Throws BAD_ARGUMENT. */
export function toSubject(issuer: string, subject: string, version?: bigint): Subject | undefined {
  if (subject === "") return undefined;
  return {
    issuer: bareIssuer(person("issuer", issuer, ISSUER_MAX_LENGTH)),
    subject: person("subject", subject, SUBJECT_MAX_LENGTH),
    ...(version === undefined ? {} : { version }),
  };
}

/** Any text of a provider without NUL, which the store cannot keep. */
function person(field: string, value: string, maxLength: number): string {
  if (value.length <= maxLength && value.isWellFormed() && !value.includes("\0")) return value;
  throw new GroveError("BAD_ARGUMENT", `${field} has at most ${maxLength} characters`);
}

/** A short text that the store keeps. Throws BAD_ARGUMENT for blanks, other scripts, and too many characters. */
export function label(field: string, value: string, options: { readonly mayBeEmpty?: boolean } = {}): string {
  if (value === "" && options.mayBeEmpty === true) return value;
  if (value.length <= NODE_LABEL_MAX_LENGTH && LABEL.test(value)) return value;
  throw new GroveError(
    "BAD_ARGUMENT",
    `${field} has 1 to ${NODE_LABEL_MAX_LENGTH} printable ASCII characters without blanks`,
  );
}

/** A display name: any script, but no character that moves a cursor or a line. */
function displayName(name: string): string {
  if (
    name.length <= NODE_LABEL_MAX_LENGTH &&
    name.isWellFormed() &&
    !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ufffd]/u.test(name)
  ) {
    return name;
  }
  throw new GroveError("BAD_ARGUMENT", `name has at most ${NODE_LABEL_MAX_LENGTH} printable characters`);
}
