// The one authorization decision of spec 5.4: who may do what to an inode, from the verified identity alone.
import type { ErrorCode } from "#base/errors.ts";
import type { VerifiedIdentity } from "#base/verified-identity.ts";

/** A permission of spec 5.4; to share is what owners alone may. */
export type Permission = "read" | "write" | "delete" | "share" | "admin";

/** To whom an administrator has handed a root over, and who therefore may reach all of it. */
export interface Heir {
  readonly username: string;
  readonly mayDelete: boolean;
}

/** What is being reached: who owns the root, and who shares the deepest inode of the path that exists. */
export interface Target {
  /** Username of the root's owner, as the request names the root; the root need not exist. */
  readonly owner: string;
  /** Users with whom that inode is shared, by a grant on it or above it; empty when there is no such root. */
  readonly shared: readonly string[];
  /** Who may reach the whole root by an administrator's word, at this moment; absent for nobody. */
  readonly heirs?: readonly Heir[] | undefined;
}

/** Allowed, or the reason why not. */
export type Decision =
  | { readonly allowed: true }
  | {
      readonly allowed: false;
      readonly code: Extract<ErrorCode, "NOT_OWNER" | "NOT_SHARED" | "NOT_ADMIN">;
      readonly message: string;
    };

const ALLOWED: Decision = { allowed: true };

// One constant answer per permission: a refusal must not tell whether the root, the path or a share exists (D1).
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
 * Decides one access (spec 5.4, D13): read and write for the owner, for sharees and for heirs, delete for the owner and for heirs who were
 * given that, share for the owner, admin for the configured administrator. The answer to a stranger is the same whether or not what was asked for exists. Administrators have no right to files.
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

/** Decides who may see a root's quota: its owner, whoever shares something in it or is its heir, and the administrator (D13). */
export function decideQuotaView(
  caller: VerifiedIdentity,
  target: Target,
  adminUsername: string | undefined,
): Decision {
  const asReader = decide(caller, "read", target, adminUsername);
  return asReader.allowed || decide(caller, "admin", target, adminUsername).allowed ? ALLOWED : asReader;
}
