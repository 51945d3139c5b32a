// `grove quota set`: a user's quota and inode limit, by an administrator or the password (spec 5.5).
import { InvalidArgumentError } from "commander";
import { formatBytes, parseBytes } from "#base/bytes.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { IDS_PER_ROOT, U64_MAX } from "#base/limits.ts";
import { canonicalUsername } from "#base/names.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import type { ClientFlags } from "#client/connection/client-flags.ts";
import { type Cluster, SHORT } from "#client/connection/cluster.ts";
import { refusalOf } from "#client/connection/refusal.ts";
import { ClientError, withHint } from "#client/terminal/client-error.ts";
import { CALL_TIMEOUT_MS } from "#client/terminal/limits.ts";
import type { GetQuotaResponse, SetQuotaResponse } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import {
  type AdminPasswordFlags,
  askPasswordHash,
  isByPassword,
  passwordMetadata,
  requireSafeForPassword,
} from "./admin-password.ts";

/** The options of `grove quota set`. */
export interface SetFlags extends AdminPasswordFlags, ClientFlags {
  readonly inodes?: bigint;
}

/** What to do about a user who has no root on the server asked. */
export const ELSEWHERE =
  "Check the name; if it is right, name the server that holds the user's files with --fileserver HOST:PORT.";

/** The limits that `grove quota set` asks for; one that is not named is undefined. */
interface QuotaArguments {
  readonly username: string;
  readonly quotaBytes: bigint | undefined;
  readonly inodeLimit: bigint | undefined;
}

/** Sets the named limits and prints those in force. Throws USAGE, and the refusals of D1. */
export async function setQuota(
  context: ClientContext,
  user: string,
  size: string | undefined,
  flags: SetFlags,
): Promise<void> {
  const request = { username: canonicalUsername(user), quotaBytes: sizeOf(size), inodeLimit: flags.inodes };
  if (request.quotaBytes === undefined && request.inodeLimit === undefined) {
    throw new ClientError("USAGE", "there is nothing to set", {
      todo: "Name a size, or how many files and folders with --inodes.",
    });
  }
  const cluster = await context.cluster();
  const root = await rootNear(cluster, request.username);
  const reply = isByPassword(flags)
    ? await setByPassword(context, root, request)
    : await setByName(cluster, root, request);
  requireSuccess(reply);
  if (request.inodeLimit !== undefined && reply.inodeLimit === 0n) {
    throw new ClientError("USAGE", "the server knows no inode limits, so that none was set", {
      todo: "Bring it up to date first.",
    });
  }
  await tellSet(context, request, reply);
}

function sizeOf(text: string | undefined): bigint | undefined {
  if (text === undefined) return undefined;
  const bytes = parseBytes(text);
  if (bytes !== undefined && bytes <= U64_MAX) return bytes;
  throw new ClientError("USAGE", `${JSON.stringify(text)} is not a size`, {
    todo: "Write bytes, or a number with KiB, MiB, GiB or TiB.",
  });
}

async function tellSet(
  context: ClientContext,
  { username, quotaBytes, inodeLimit }: QuotaArguments,
  reply: SetQuotaResponse,
): Promise<void> {
  if (context.isJson) {
    await context.printJson({
      username,
      ...(quotaBytes === undefined ? {} : { quota_bytes: quotaBytes }),
      ...(inodeLimit === undefined ? {} : { inode_limit: reply.inodeLimit }),
    });
    return;
  }
  if (quotaBytes !== undefined) {
    const what = quotaBytes === 0n ? "the default quota again" : `a quota of ${formatBytes(quotaBytes)}`;
    await context.print(`${username} has ${what}.`);
  }
  if (inodeLimit !== undefined) {
    const again = inodeLimit === 0n ? ", the default" : "";
    const count = reply.inodeLimit.toLocaleString("en-US");
    await context.print(`${username} may have ${count} files and folders${again}.`);
  }
}

/**
 * Sets as the caller. An unnamed quota is read first: the message always has one, for servers of every
 * version (spec 2.2).
 */
function setByName(cluster: Cluster, root: string, request: QuotaArguments): Promise<SetQuotaResponse> {
  const { username, inodeLimit } = request;
  const set = cluster.run(root, SHORT, async ({ files, unary }) => {
    const quotaBytes = request.quotaBytes ?? presentQuota(await files.getQuota({ root: username }, unary));
    // Another administrator may set it between the two calls.
    const keepQuota = request.quotaBytes === undefined;
    return files.setQuota({ ...requestOf({ username, inodeLimit, quotaBytes }), keepQuota }, unary);
  });
  return set.catch(withHint("NO_SUCH_PATH", ELSEWHERE));
}

function presentQuota({ source, quotaBytes }: GetQuotaResponse): bigint {
  return source === "default" ? 0n : quotaBytes;
}

function requestOf({ username, quotaBytes, inodeLimit }: QuotaArguments & { readonly quotaBytes: bigint }): {
  username: string;
  quotaBytes: bigint;
  inodeLimit?: bigint;
} {
  return { username, quotaBytes, ...(inodeLimit === undefined ? {} : { inodeLimit }) };
}

/** Reads `--inodes`. */
export function parseInodes(text: string): bigint {
  const count = /^[0-9]{1,10}$/.test(text) ? BigInt(text) : undefined;
  if (count !== undefined && count <= BigInt(IDS_PER_ROOT)) return count;
  throw new InvalidArgumentError(`write a whole number from 0 to ${IDS_PER_ROOT}.`);
}

/** Throws the refusal, which comes as a reply instead of a status (spec 2.2). */
function requireSuccess(reply: SetQuotaResponse): void {
  if (reply.success) return;
  if (reply.error.startsWith("permission denied")) throw new GroveError("NOT_ADMIN", reply.error);
  throw new ClientError("USAGE", reply.error === "" ? "the server refused" : reply.error, {
    todo: ELSEWHERE,
  });
}

/**
 * A root on the server to ask: the user's own where its route is known, else the caller's. Administrators see
 * no more of other users' roots than other users do (spec 5.4).
 */
export async function rootNear(cluster: Cluster, username: string): Promise<string> {
  try {
    await cluster.router.find(username);
    return username;
  } catch (error) {
    if (isGroveError(error, "NOT_SHARED", "NOT_OWNER", "NO_SUCH_PATH")) return "";
    throw error;
  }
}

async function setByPassword(
  context: ClientContext,
  root: string,
  { username, quotaBytes, inodeLimit }: QuotaArguments,
): Promise<SetQuotaResponse> {
  if (quotaBytes === undefined) {
    throw new ClientError("USAGE", "with the password alone nobody sees what quota is set now", {
      todo: "Name the size as well, or leave the password away if you are an administrator.",
    });
  }
  const cluster = await context.cluster();
  const { address } = await cluster.router.find(root);
  requireSafeForPassword(await context.profile(), address);
  const passwordHash = await askPasswordHash(context);
  const files = await cluster.link(address).filesWithoutSession();
  try {
    return await files.setQuota(requestOf({ username, quotaBytes, inodeLimit }), {
      metadata: passwordMetadata(passwordHash),
      timeoutMs: CALL_TIMEOUT_MS,
      signal: context.signal,
    });
  } catch (error) {
    throw await refusalOf(error, address);
  }
}
