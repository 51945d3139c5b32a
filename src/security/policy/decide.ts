// The one authorization decision of spec 5.4: access to an inode, from the verified identity alone.
import type { ErrorCode } from "#base/errors.ts";
import type { VerifiedIdentity } from "#base/verified-identity.ts";

/** A permission of spec 5.4; only owners may share. */
export type Permission = "read" | "write" | "delete" | "share" | "admin";

/** A user to whom an administrator has handed a root over, with access to all of it. */
export interface Heir {
  readonly username: string;
  readonly mayDelete: boolean;
}

/**
 * The target of an access: the root's owner, and the users who share the deepest existing inode of the path.
 */
export interface Target {
  /** Username of the root's owner, as the request names the root; the root need not exist. */
  readonly owner: string;
  /** Users with whom that inode is shared, by a grant on it or above it; empty for a missing root. */
  readonly shared: readonly string[];
  /** Users with access to the whole root by an administrator's decision, at this moment; absent for none. */
  readonly heirs?: readonly Heir[] | undefined;
}

/** Allowed, or the reason of the refusal. */
export type Decision =
  | { readonly allowed: true }
  | {
      readonly allowed: false;
      readonly code: Extract<ErrorCode, "NOT_OWNER" | "NOT_SHARED" | "NOT_ADMIN">;
      readonly message: string;
    };

const ALLOWED: Decision = { allowed: true };

// One constant answer per permission: a refusal must not reveal whether the root, the path or a share exists
// (D1).
const NOT_SHARED: Decision = {
  allowed: false,
  code: "NOT_SHARED",
  message: "permission denied: this is not yours and is not shared with you",
};
const NOT_OWNER: Decision = {
  allowed: false,
  code: "NOT_OWNER",
  message: "permission denied: only the owner may do this",
};
const NOT_ADMIN: Decision = {
  allowed: false,
  code: "NOT_ADMIN",
  message: "permission denied: only a cluster administrator may do this",
};

/**
 * Decides one access (spec 5.4, D13): read and write for the owner, for sharees and for heirs, delete for the
 * owner and for heirs with that right. Share is for the owner, admin for the configured administrator. A
 * stranger's answer is the same whether or not the target exists. Administrators have no right to files.
 */
export function decide(
  caller: VerifiedIdentity,
  permission: Permission,
  target: Target,
  adminUsername: string | undefined,
): Decision {
  switch (permission) {
    case "delete":
      return caller.username === target.owner || heirOf(caller, target)?.mayDelete === true
        ? ALLOWED
        : NOT_OWNER;
    case "share":
      return caller.username === target.owner ? ALLOWED : NOT_OWNER;
    case "admin":
      return adminUsername !== undefined && adminUsername !== "" && caller.username === adminUsername
        ? ALLOWED
        : NOT_ADMIN;
    case "read":
    case "write":
    default:
      return caller.username === target.owner ||
        target.shared.includes(caller.username) ||
        heirOf(caller, target) !== undefined
        ? ALLOWED
        : NOT_SHARED;
  }
}

function heirOf(caller: VerifiedIdentity, { heirs }: Target): Heir | undefined {
  return heirs?.find(({ username }) => username === caller.username);
}

/** Decides who may see a root's quota: its owner, its sharees and heirs, and the administrator (D13). */
export function decideQuotaView(
  caller: VerifiedIdentity,
  target: Target,
  adminUsername: string | undefined,
): Decision {
  const asReader = decide(caller, "read", target, adminUsername);
  return asReader.allowed || decide(caller, "admin", target, adminUsername).allowed ? ALLOWED : asReader;
}
