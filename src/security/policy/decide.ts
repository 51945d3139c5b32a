// The one authorization decision of spec 5.4: access to an inode, from the verified identity alone.
import type { ErrorCode } from "#base/errors.ts";
import type { LinkRight, VerifiedIdentity } from "#base/verified-identity.ts";
import type { GroupRole } from "./group.ts";

/** A permission of spec 5.4; only owners may share. */
export type Permission = "read" | "write" | "delete" | "share" | "admin";

/**
 * A user with access to all of a root: one to whom an administrator has handed it over, or a member of the
 * group that owns it or got it.
 */
export interface Heir {
  readonly username: string;
  readonly mayDelete: boolean;
  /** True for members who may read alone. */
  readonly readOnly?: boolean;
  /** True for members who manage the group that owns the root. */
  readonly mayShare?: boolean;
  /** The group by which it is; absent for a person's own. */
  readonly group?: string;
}

/** The rights of a role in the group that owns a root. */
export function memberOf(username: string, group: string, role: GroupRole): Heir {
  return {
    username,
    group,
    mayDelete: role !== "read",
    readOnly: role === "read",
    mayShare: role === "manage",
  };
}

/** The rights of a role in a group that a root is handed over to: no more than the handing over gives. */
export function heirByGroup(member: Heir, handOver: Pick<Heir, "mayDelete">): Heir {
  return { ...member, mayDelete: member.mayDelete && handOver.mayDelete, mayShare: false };
}

/** The one of a user's ways into a root that gives most; what a stronger one gives includes the weaker's. */
export function strongestHeir(heirs: readonly Heir[]): Heir | undefined {
  let strongest: Heir | undefined;
  for (const heir of heirs) {
    if (strongest === undefined || strengthOf(heir) > strengthOf(strongest)) strongest = heir;
  }
  return strongest;
}

function strengthOf({ readOnly, mayDelete, mayShare }: Heir): number {
  if (readOnly === true) return 0;
  return 1 + Number(mayDelete) + Number(mayShare === true);
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
  /**
   * Ids of the existing inodes of the path, from the root directory down; absent where the path is unknown,
   * which lets nobody in whose credential holds below one folder.
   */
  readonly way?: readonly string[] | undefined;
}

/** Allowed, or the reason of the refusal. */
export type Decision =
  | { readonly allowed: true }
  | {
      readonly allowed: false;
      readonly code: Extract<ErrorCode, "NOT_OWNER" | "NOT_SHARED" | "NOT_ADMIN">;
      readonly message: string;
      /** True where the person may, and the credential may not. */
      readonly leavesScope?: true;
      /** True for a member who may read the place and no more. */
      readonly isReader?: true;
    };

/** Whose something is that outlives its call, such as a lock: a person, by a credential with its bounds. */
export type Holder = Pick<VerifiedIdentity, "username" | "limit">;

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

const READER: Decision = {
  allowed: false,
  code: "NOT_SHARED",
  message: "permission denied: your role in this group is to read",
  isReader: true,
};

const READ_ONLY: Decision = {
  allowed: false,
  code: "NOT_OWNER",
  message: "permission denied: this app password may only read",
  leavesScope: true,
};
const NEEDS_SIGN_IN: Decision = {
  allowed: false,
  code: "NOT_OWNER",
  message: "permission denied: an app password may not do this; sign in",
  leavesScope: true,
};
const NEEDS_RECENT_SIGN_IN: Decision = {
  allowed: false,
  code: "NOT_OWNER",
  message: "permission denied: this needs a sign-in of the last ten minutes; sign in again",
  leavesScope: true,
};
const OUTSIDE_FOLDER: Decision = {
  allowed: false,
  code: "NOT_SHARED",
  message: "permission denied: this app password holds below one folder alone",
  leavesScope: true,
};

const NOT_BY_LINK: Decision = {
  allowed: false,
  code: "NOT_SHARED",
  message: "permission denied: this link does not let you do that",
};

/**
 * Decides for the visitor of a link, who has no rights but these: to read what the link opens and what is below
 * it, or to put into its folder what is not there yet.
 */
function decideLink({ kind, owner, inodeId }: LinkRight, permission: Permission, target: Target): Decision {
  const depth = target.owner === owner ? (target.way?.indexOf(inodeId) ?? -1) : -1;
  if (depth < 0 || target.way === undefined) return NOT_BY_LINK;
  if (kind === "read") return permission === "read" ? ALLOWED : NOT_BY_LINK;
  return permission === "write" && depth === target.way.length - 1 ? ALLOWED : NOT_BY_LINK;
}

/**
 * Decides whether a credential's bounds leave room for an access, whatever its person may: a door's app
 * password never shares or administers, a browser shares for ten minutes after its sign-in. A password for
 * reading changes nothing. One for a folder goes nowhere else and does not take that folder itself away.
 */
export function decideScope(
  { username, limit }: Holder,
  permission: Permission,
  { owner, way }: Pick<Target, "owner" | "way">,
): Decision {
  if (limit === undefined) return ALLOWED;
  if (permission === "admin") return NEEDS_SIGN_IN;
  if (permission === "share" && limit.mayShare?.() !== true)
    return limit.mayShare === undefined ? NEEDS_SIGN_IN : NEEDS_RECENT_SIGN_IN;
  const { access, folderId } = limit;
  if (folderId !== undefined) {
    const depth = owner === username ? (way?.indexOf(folderId) ?? -1) : -1;
    if (depth < 0 || way === undefined) return OUTSIDE_FOLDER;
    if (permission === "delete" && depth === way.length - 1) return OUTSIDE_FOLDER;
  }
  return access === "read" && permission !== "read" ? READ_ONLY : ALLOWED;
}

/**
 * Decides one access (spec 5.4, D13, D33): read and write for the owner, for sharees and for heirs, delete for
 * the owner and for heirs with that right; members who read alone do neither. Share is for the owner and for
 * members who manage the root's group, admin for the configured administrator. A stranger's answer is the
 * same whether or not the target exists. Administrators have no right to files.
 */
export function decide(
  caller: VerifiedIdentity,
  permission: Permission,
  target: Target,
  adminUsername: string | undefined,
): Decision {
  if (caller.link !== undefined) return decideLink(caller.link, permission, target);
  const byPerson = decideForPerson(caller, permission, target, adminUsername);
  // A stranger's answer is the same by every credential.
  return byPerson.allowed ? decideScope(caller, permission, target) : byPerson;
}

/** Decides whether what was taken by a right to write still stands, as `decide` would for a call of its holder. */
export function decideHeld(holder: Holder, target: Target): Decision {
  const byPerson = decideForPerson(holder, "write", target, undefined);
  return byPerson.allowed ? decideScope(holder, "write", target) : byPerson;
}

function decideForPerson(
  caller: Holder,
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
      return caller.username === target.owner || heirOf(caller, target)?.mayShare === true
        ? ALLOWED
        : NOT_OWNER;
    case "admin":
      return adminUsername !== undefined && adminUsername !== "" && caller.username === adminUsername
        ? ALLOWED
        : NOT_ADMIN;
    case "write":
      return isSharer(caller, target) ? ALLOWED : byWriter(heirOf(caller, target));
    case "read":
    default:
      return isSharer(caller, target) || heirOf(caller, target) !== undefined ? ALLOWED : NOT_SHARED;
  }
}

function isSharer({ username }: Holder, { owner, shared }: Target): boolean {
  return username === owner || shared.includes(username);
}

function byWriter(heir: Heir | undefined): Decision {
  if (heir === undefined) return NOT_SHARED;
  return heir.readOnly === true ? READER : ALLOWED;
}

function heirOf(caller: Holder, { heirs }: Target): Heir | undefined {
  return heirs?.find(({ username }) => username === caller.username);
}

/** Decides who may see a root's quota: its owner, its sharees and heirs, and the administrator (D13). */
export function decideQuotaView(
  caller: VerifiedIdentity,
  target: Target,
  adminUsername: string | undefined,
): Decision {
  // How full one's own root is concerns whoever may put anything into it.
  if (caller.limit !== undefined && caller.username === target.owner) return ALLOWED;
  const asReader = decide(caller, "read", target, adminUsername);
  return asReader.allowed || decide(caller, "admin", target, adminUsername).allowed ? ALLOWED : asReader;
}
