// The verb `quota`: shows the use of quota and inode limit, and sets both for administrators (spec 5.5).
import { Command } from "commander";
import { formatBytes } from "#base/bytes.ts";
import { canonicalUsername } from "#base/names.ts";
import { PERCENT_TOLD_MAX } from "#base/usage-level.ts";
import {
  ELSEWHERE,
  parseInodes,
  rootNear,
  type SetFlags,
  setQuota,
} from "#client/administration/quota-set.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { SHORT } from "#client/connection/cluster.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { withHint } from "#client/terminal/client-error.ts";
import type { GetQuotaResponse } from "#wire/proto/gen/grove/v1/file_server_pb.ts";

/** Makes the parser of `grove quota` and `grove quota set`. */
export function command(host: CommandHost = processHost()): Command {
  const set = withClientFlags(
    new Command("set")
      .description("Set a user's quota, or how many files and folders; for administrators of the cluster.")
      .argument("<user>", "e-mail address")
      .argument(
        "[size]",
        "bytes, or such as 500MiB, 32GiB, 1.5T; 0 is the default quota; as it is without one",
      )
      .option("--inodes <n>", "files and folders, those in the trash included; 0 is the default", parseInodes)
      .option(
        "--admin-password",
        "use the administrator's password, asked without showing it, instead of who you are",
      )
      .option("--admin-password-stdin", "the same, read from standard input"),
    [
      ["grove quota set bob@example.com 32GiB", "as the user whom SVC_ADMIN_EMAIL names"],
      ["grove quota set bob@example.com 0 --admin-password", "back to the default, by password"],
      ["grove quota set bob@example.com --inodes 20000000", "more files and folders, the quota as it is"],
    ],
  ).action((user: string, size: string | undefined, _flags: SetFlags, verb: Command) => {
    // The parser of `quota` reads the options that both share, in any position.
    const flags = verb.optsWithGlobals<SetFlags>();
    return host.run("quota", flags, (context) => setQuota(context, user, size, flags));
  });
  return withClientFlags(
    new Command("quota")
      .description(
        "Show how much of a quota is used, and how many files and folders there are: of your own, or of a user who shares with you; an administrator sees any on the same server.",
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
  // An administrator may see quotas of roots whose route no server reveals (decision D13).
  const near = root === "" ? "" : await rootNear(cluster, root);
  const quota = await cluster
    .run(near, SHORT, (server) => server.files.getQuota({ root }, server.unary))
    .catch(withHint("NO_SUCH_PATH", ELSEWHERE));
  if (context.isJson) {
    await context.printJson({
      root,
      quota_bytes: quota.quotaBytes,
      used_bytes: quota.usedBytes,
      live_bytes: quota.liveBytes,
      trash_bytes: quota.trashBytes,
      staging_bytes: quota.stagingBytes,
      quota_source: quota.source,
      ...(knowsInodes(quota)
        ? {
            inode_limit: quota.inodeLimit,
            inodes: quota.inodes,
            trash_inodes: quota.trashInodes,
            inode_limit_source: quota.inodeLimitSource,
          }
        : {}),
    });
  } else {
    await context.print(...quotaRows(quota));
  }
}

/** The rows for people. */
export function quotaRows(quota: GetQuotaResponse): string[] {
  const { quotaBytes, usedBytes } = quota;
  const left = quotaBytes > usedBytes ? quotaBytes - usedBytes : 0n;
  const parts: [string, string][] = [
    ["quota", `${formatBytes(quotaBytes)} (${sourceText(quota.source)})`],
    ["used", `${formatBytes(usedBytes)} (${percentText(usedBytes, quotaBytes)})`],
    ["  files", formatBytes(quota.liveBytes)],
    ["  trash", formatBytes(quota.trashBytes)],
    ["  uploads", formatBytes(quota.stagingBytes)],
    ["left", formatBytes(left)],
  ];
  if (knowsInodes(quota)) {
    const { inodes, inodeLimit, trashInodes } = quota;
    const trash = trashInodes === 0n ? "" : `, ${trashInodes.toLocaleString("en-US")} of them in the trash`;
    parts.push(
      ["files and folders", `${inodes.toLocaleString("en-US")} (${percentText(inodes, inodeLimit)})${trash}`],
      ["  at most", `${inodeLimit.toLocaleString("en-US")} (${sourceText(quota.inodeLimitSource)})`],
    );
  }
  return parts.map(([name, value]) => `${name.padEnd(17)} ${value}`);
}

/** False for a server older than inode limits. */
function knowsInodes({ inodeLimit }: GetQuotaResponse): boolean {
  return inodeLimit > 0n;
}

function sourceText(source: string): string {
  return source === "default" ? "default" : "set for this user";
}

/** Tenths of a percent in whole numbers: both may exceed the exact range of a float. */
function percentText(used: bigint, limit: bigint): string {
  if (limit > 0n && used * 100n > limit * BigInt(PERCENT_TOLD_MAX)) return `over ${PERCENT_TOLD_MAX} %`;
  const permille = limit === 0n ? 1_000n : (used * 1_000n) / limit;
  return `${permille / 10n}.${permille % 10n} %`;
}
