// The verb `quota`: shows how much of a quota is used, and sets one for administrators (spec 5.5).
import { hash } from "node:crypto";
import { Command } from "commander";
import { formatBytes, parseBytes } from "#base/bytes.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { U64_MAX } from "#base/limits.ts";
import { canonicalUsername } from "#base/names.ts";
import type { GetQuotaResponse, SetQuotaResponse } from "#proto/gen/grove/v1/file_server_pb.ts";
import type { ClientContext } from "./client-context.ts";
import { ClientError } from "./client-error.ts";
import { type ClientFlags, withClientFlags } from "./client-flags.ts";
import { type Cluster, SHORT } from "./cluster.ts";
import { type CommandHost, processHost } from "./command-host.ts";
import { CALL_TIMEOUT_MS } from "./limits.ts";
import { askSecret } from "./prompt.ts";
import { refusalOf } from "./refusal.ts";
import { isLoopback, isPlain } from "./server-address.ts";

interface SetFlags extends ClientFlags {
  readonly adminPassword?: boolean;
  readonly adminPasswordStdin?: boolean;
}

/** Makes the parser of `grove quota` and `grove quota set`. */
export function command(host: CommandHost = processHost()): Command {
  const set = withClientFlags(
    new Command("set")
      .description("Set a user's quota; for administrators of the cluster.")
      .argument("<user>", "e-mail address")
      .argument("<size>", "bytes, or such as 500MiB, 32GiB, 1.5T; 0 is the default quota")
      .option(
        "--admin-password",
        "use the administrator's password, asked without showing it, instead of who you are",
      )
      .option("--admin-password-stdin", "the same, read from standard input"),
    [
      ["grove quota set bob@example.com 32GiB", "as the user whom SVC_ADMIN_EMAIL names"],
      ["grove quota set bob@example.com 0 --admin-password", "back to the default, by password"],
    ],
  ).action((user: string, size: string, _flags: SetFlags, verb: Command) => {
    // The options that `quota` has too are read by it, wherever they stand.
    const flags = verb.optsWithGlobals<SetFlags>();
    return host.run("quota", flags, (context) => setQuota(context, user, size, flags));
  });
  return withClientFlags(
    new Command("quota")
      .description(
        "Show how much of a quota is used: your own, or that of a user who shares with you; an administrator sees any on the same server.",
      )
      .argument("[user]", "e-mail address; your own root without it"),
    [
      ["grove quota", "your own"],
      ["grove quota alice@example.com", "what is left where alice shares with you, or to an administrator"],
      ["grove quota set bob@example.com 32GiB", "change one, for administrators"],
    ],
  )
    .action((user: string | undefined, flags: ClientFlags) =>
      host.run("quota", flags, (context) => showQuota(context, user)),
    )
    .addCommand(set);
}

async function showQuota(context: ClientContext, user: string | undefined): Promise<void> {
  const root = user === undefined ? "" : canonicalUsername(user);
  const cluster = await context.cluster();
  // An administrator may see quotas of roots to which nobody shows the way (decision D13).
  const near = root === "" ? "" : await rootNear(cluster, root);
  const quota = await cluster.run(near, SHORT, (server) => server.files.getQuota({ root }, server.unary));
  if (context.isJson) {
    await context.printJson({
      root,
      quota_bytes: quota.quotaBytes,
      used_bytes: quota.usedBytes,
      live_bytes: quota.liveBytes,
      trash_bytes: quota.trashBytes,
      staging_bytes: quota.stagingBytes,
      quota_source: quota.source,
    });
  } else {
    await context.print(...quotaRows(quota));
  }
}

/** The rows that people read. */
export function quotaRows(quota: GetQuotaResponse): string[] {
  const { quotaBytes, usedBytes } = quota;
  const left = quotaBytes > usedBytes ? quotaBytes - usedBytes : 0n;
  // Tenths of a percent in whole numbers: both may be beyond what a float holds exactly.
  const permille = quotaBytes === 0n ? 1_000n : (usedBytes * 1_000n) / quotaBytes;
  const percent = `${permille / 10n}.${permille % 10n} %`;
  const source = quota.source === "default" ? "default" : "set for this user";
  const parts: [string, string][] = [
    ["quota", `${formatBytes(quotaBytes)} (${source})`],
    ["used", `${formatBytes(usedBytes)} (${percent})`],
    ["  files", formatBytes(quota.liveBytes)],
    ["  trash", formatBytes(quota.trashBytes)],
    ["  uploads", formatBytes(quota.stagingBytes)],
    ["left", formatBytes(left)],
  ];
  return parts.map(([name, value]) => `${name.padEnd(10)} ${value}`);
}

async function setQuota(context: ClientContext, user: string, size: string, flags: SetFlags): Promise<void> {
  const username = canonicalUsername(user);
  const quotaBytes = parseBytes(size);
  if (quotaBytes === undefined || quotaBytes > U64_MAX) {
    throw new ClientError("USAGE", `${JSON.stringify(size)} is not a size`, {
      todo: "Write bytes, or a number with KiB, MiB, GiB or TiB.",
    });
  }
  const byPassword = flags.adminPassword === true || flags.adminPasswordStdin === true;
  const cluster = await context.cluster();
  const root = await rootNear(cluster, username);
  const reply = byPassword
    ? await setByPassword(context, root, { username, quotaBytes })
    : await cluster.run(root, SHORT, (server) =>
        server.files.setQuota({ username, quotaBytes }, server.unary),
      );
  requireSuccess(reply);
  if (context.isJson) await context.printJson({ username, quota_bytes: quotaBytes });
  else {
    const what = quotaBytes === 0n ? "the default quota again" : `a quota of ${formatBytes(quotaBytes)}`;
    await context.print(`${username} has ${what}.`);
  }
}

/** A refusal comes as a reply, not as a status (spec 2.2). */
function requireSuccess(reply: SetQuotaResponse): void {
  if (reply.success) return;
  if (reply.error.startsWith("permission denied")) throw new GroveError("NOT_ADMIN", reply.error);
  throw new ClientError("USAGE", reply.error === "" ? "the server refused" : reply.error, {
    todo: "Check the name; if it is right, name the server that holds the user's files with --fileserver HOST:PORT.",
  });
}

/**
 * A root on the server that is to be asked: the user's own where the way to it is told, else the caller's, since an administrator is
 * shown no more of other users' roots than anybody (spec 5.4).
 */
async function rootNear(cluster: Cluster, username: string): Promise<string> {
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
  request: { readonly username: string; readonly quotaBytes: bigint },
): Promise<SetQuotaResponse> {
  const cluster = await context.cluster();
  const { address } = await cluster.router.find(root);
  const profile = await context.profile();
  // The hash is as good as the password (decision T9), so it does not cross a network that can be read.
  if (isPlain(profile) && !isLoopback(address)) {
    throw new ClientError(
      "USAGE",
      `the password is not sent to ${address}, since the connection is not encrypted`,
    );
  }
  const password = await askSecret(context.terminal, "Administrator's password: ", context.signal);
  const files = await cluster.link(address).filesWithoutSession();
  try {
    return await files.setQuota(request, {
      metadata: { "x-admin-password-hash": hash("sha256", password, "hex") },
      timeoutMs: CALL_TIMEOUT_MS,
      signal: context.signal,
    });
  } catch (error) {
    throw await refusalOf(error, address);
  }
}
