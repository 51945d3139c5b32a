// Explains refusals for quota and inodes: what fills the limit, how much is missing, what makes room.
import { formatBytes } from "#base/bytes.ts";
import type { ErrorMetadata } from "#base/errors.ts";
import { QUOTA_EXCEEDED_TEXT } from "#base/refusal-texts.ts";
import { groupNameOf } from "#security/policy/group.ts";

/** The numbers of a QUOTA_EXCEEDED in bytes; undefined for missing or invalid ones (decision D1). */
type QuotaNumbers = Readonly<
  Record<"quota" | "used" | "reserved" | "requested" | "trash" | "staging", bigint | undefined>
>;

/**
 * The two sentences of QUOTA_EXCEEDED (decision D1), the first with the text that section 7 of the
 * specification fixes. Without numbers they say less, never something wrong.
 */
export function explainQuota({ metadata }: { readonly metadata: ErrorMetadata }): {
  what: string;
  todo: string;
} {
  const numbers = quotaNumbers(metadata);
  const { quota, used } = numbers;
  if (quota === undefined || used === undefined) {
    return {
      what: `The server refused this: ${QUOTA_EXCEEDED_TEXT}.`,
      todo: "See 'grove quota', and delete what is not needed.",
    };
  }
  const owner = metadata["root_owner"] ?? "";
  const taken = used + (numbers.reserved ?? 0n);
  const leftBytes = quota > taken ? quota - taken : 0n;
  const requested = numbers.requested ?? 0n;
  const missingBytes = requested > leftBytes ? requested - leftBytes : taken - quota;
  const whose = owner === "" ? "The quota" : `The quota of ${owner}`;
  const needs =
    requested > leftBytes ? `this needs ${formatBytes(missingBytes)} more` : "nothing of it is left";
  return {
    what: `${whose} is ${formatBytes(quota)}, ${parts(numbers, used)}; ${needs}: ${QUOTA_EXCEEDED_TEXT}.`,
    todo: room(numbers.trash ?? 0n, missingBytes, isOfSomebodyElse(metadata, owner) ? owner : undefined),
  };
}

/**
 * The two sentences of INODE_LIMIT: the number of files and folders, and what makes room. Without numbers
 * they say less.
 */
export function explainInodes({ metadata }: { readonly metadata: ErrorMetadata }): {
  what: string;
  todo: string;
} {
  const read = (name: string): number | undefined => {
    const text = metadata[name];
    return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
  };
  const [inodes, limit] = [read("inodes"), read("inode_limit")];
  if (inodes === undefined || limit === undefined) {
    return {
      what: "The server refused this: no more files and folders fit into this root.",
      todo: "See 'grove quota', and delete what is not needed.",
    };
  }
  const owner = metadata["root_owner"] ?? "";
  const [trash = 0, reserved = 0, requested = 1] = [
    read("trash_inodes"),
    read("reserved"),
    read("requested"),
  ];
  const whose = owner === "" ? "The root" : `The root of ${owner}`;
  const inTrash = trash === 0 ? "" : `, ${countText(trash)} of them in the trash`;
  const underWay = reserved === 0 ? "" : `, and ${countText(reserved)} are being made`;
  const left = Math.max(0, limit - inodes - reserved);
  const needs = requested > left && left > 0 ? `; this would make ${countText(requested)} more` : "";
  return {
    what: `${whose} holds ${countText(inodes)} files and folders${inTrash}${underWay}; it may hold ${countText(limit)}${needs}.`,
    todo: roomForInodes(trash, isOfSomebodyElse(metadata, owner) ? owner : undefined),
  };
}

function countText(count: number): string {
  return count.toLocaleString("en-US");
}

function roomForInodes(trash: number, owner: string | undefined): string {
  if (owner !== undefined) {
    return `Ask ${deleterOf(owner)} to delete something${trash > 0 ? ", or to empty the trash" : ""}.`;
  }
  const ask = "ask an administrator for a higher limit";
  return trash > 0
    ? `'grove trash empty' would make room for ${countText(trash)}; or ${ask}.`
    : `Delete what is not needed (grove rm, then grove trash empty), or ${ask}.`;
}

/** The contents of the quota: "12.1 GiB in files, 3.9 GiB in trash". */
function parts(numbers: QuotaNumbers, used: bigint): string {
  const { trash = 0n, staging = 0n, reserved = 0n } = numbers;
  const files = used > trash + staging ? used - trash - staging : 0n;
  return [
    `${formatBytes(files)} in files`,
    trash > 0n ? `${formatBytes(trash)} in trash` : "",
    staging > 0n ? `${formatBytes(staging)} in unfinished uploads` : "",
    reserved > 0n ? `${formatBytes(reserved)} promised to uploads under way` : "",
  ]
    .filter((part) => part !== "")
    .join(", ");
}

/** What makes room; owner is the root's owner when it is not the reader, who may not delete there. */
function room(trash: bigint, missing: bigint, owner: string | undefined): string {
  const ask = "ask an administrator for a larger quota";
  if (owner !== undefined) {
    const emptied = trash > 0n ? `, or to empty the trash, which would free ${formatBytes(trash)}` : "";
    return `Ask ${deleterOf(owner)} to delete something${emptied}.`;
  }
  if (trash === 0n) return `Delete what is not needed (grove rm, then grove trash empty), or ${ask}.`;
  const frees = `'grove trash empty' would free ${formatBytes(trash)}`;
  return trash >= missing
    ? `${frees}.`
    : `${frees}, which is not enough: delete more before (grove rm), or ${ask}.`;
}

/** Who may delete in somebody else's root: in a group's its managers, since nobody has the group's address. */
function deleterOf(owner: string): string {
  return groupNameOf(owner) === undefined ? owner : "a member who manages it";
}

/** True when the path that was written leads into the root of another user. */
function isOfSomebodyElse(metadata: ErrorMetadata, owner: string): boolean {
  return owner !== "" && (metadata["path"] ?? "").startsWith(`${owner}:`);
}

function quotaNumbers(metadata: ErrorMetadata): QuotaNumbers {
  const read = (...names: readonly string[]): bigint | undefined => {
    const text = names.map((name) => metadata[name]).find((value) => value !== undefined);
    return text !== undefined && /^\d{1,20}$/.test(text) ? BigInt(text) : undefined;
  };
  return {
    quota: read("quota_bytes", "quota"),
    used: read("used_bytes", "used"),
    reserved: read("reserved"),
    requested: read("requested_bytes", "requested"),
    trash: read("trash_bytes", "trash"),
    staging: read("staging_bytes"),
  };
}
