// The verb `app-password`: makes, lists and revokes passwords for programs that reach one's files through a door.
import { Command } from "commander";
import { systemClock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { untilSeconds } from "#base/until-text.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { type Cluster, type RetryPolicy, SHORT } from "#client/connection/cluster.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { attrOf } from "#client/connection/listing.ts";
import { ClientError, withHint } from "#client/terminal/client-error.ts";
import { localTime } from "#client/terminal/local-time.ts";
import type { AppPassword } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";

/** For what is shown without an answer too. */
const AT_ONCE: RetryPolicy = { isRepeatable: true, attempts: 1 };

interface CreateFlags extends ClientFlags {
  readonly readOnly?: boolean;
  readonly folder?: string;
  readonly until?: string;
}

/** Makes the parser of `grove app-password`. */
export function command(host: CommandHost = processHost()): Command {
  const root = new Command("app-password")
    .description(
      "Make, list and revoke passwords for programs such as davfs2 or a phone's file manager, which reach your files through a door of the cluster. " +
        "Each can be revoked by itself. Needs a sign-in of the last ten minutes.",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  grove app-password create laptop   for a program on it\n  grove app-password list            which there are",
    )
    .action(() => root.help());
  withClientFlags(
    root
      .command("create")
      .description("Make one. It is shown this once.")
      .argument("<name>", "what it is for, such as laptop")
      .option("--read-only", "it changes nothing")
      .option("--folder <path>", "it holds in this folder of yours alone, also after the folder has moved")
      .option("--until <when>", 'it ends then: "30d", or "Friday 18:00"'),
    [
      ["grove app-password create laptop", "for a program on it"],
      ["grove app-password create tv --read-only --folder /films --until 30d", "for somebody's television"],
      ["grove app-password create laptop --json", "password and webdav_url for a script"],
    ],
  ).action((name: string, flags: CreateFlags) =>
    host.run("app-password create", flags, (context) => create(context, name, flags)),
  );
  withClientFlags(root.command("list").description("List them, and when each was used last."), [
    ["grove app-password list", "which there are"],
  ]).action((flags: ClientFlags) => host.run("app-password list", flags, list));
  withClientFlags(
    root
      .command("revoke")
      .description("End one: what is running with it stops within seconds.")
      .argument("<name>", "its name or id"),
    [["grove app-password revoke laptop", "when the laptop is lost"]],
  ).action((name: string, flags: ClientFlags) =>
    host.run("app-password revoke", flags, (context) => revoke(context, name)),
  );
  return root;
}

async function create(context: ClientContext, name: string, flags: CreateFlags): Promise<void> {
  const endsMs = flags.until === undefined ? 0 : endOf(flags.until);
  const folder = flags.folder === undefined ? undefined : await folderOf(context, flags.folder);
  const { router } = await context.cluster();
  const made = await router.createAppPassword({
    name,
    readOnly: flags.readOnly === true,
    folderId: folder?.id ?? "",
    folderPath: folder?.path ?? "",
    endsMs: BigInt(Math.trunc(endsMs)),
  });
  const { password, appPassword } = made;
  const webdavUrl = addressOf(made.webdavUrl, folder?.path ?? "/");
  if (context.isJson) {
    const facts = appPassword === undefined ? {} : jsonOf(appPassword);
    await context.printJson({ password, webdav_url: webdavUrl === "" ? null : webdavUrl, ...facts });
    return;
  }
  await context.print(password);
  context.note("It is shown this once: put it into the program now, with your e-mail address as the user.");
  context.note(
    webdavUrl === ""
      ? "Ask your operator for the address of the door."
      : `The address for WebDAV programs: ${webdavUrl}`,
  );
}

async function list(context: ClientContext): Promise<void> {
  const cluster = await context.cluster();
  const passwords = await cluster.ask((router) => router.listAppPasswords());
  const found: { readonly password: AppPassword; readonly hasLeft: boolean | null }[] = [];
  for (const password of passwords) found.push({ password, hasLeft: await hasFolderLeft(cluster, password) });
  if (context.isJson) {
    return context.printJson({
      app_passwords: found.map(({ password, hasLeft }) => ({
        ...jsonOf(password),
        folder_has_left: hasLeft,
      })),
    });
  }
  if (found.length === 0) context.note("You have none; 'grove app-password create NAME' makes one.");
  await context.print(...found.flatMap(linesOf));
}

/** True when its folder has moved or gone since the password was made; null without a folder or an answer. */
export async function hasFolderLeft(
  cluster: Pick<Cluster, "runAt">,
  { folderId, folderPath }: Pick<AppPassword, "folderId" | "folderPath">,
): Promise<boolean | null> {
  if (folderId === "") return null;
  try {
    return (await attrOf(cluster, { root: "", path: folderPath }, AT_ONCE)).id !== folderId;
  } catch (error) {
    // The list comes from MetaServers, and is shown without the FileServer too.
    return isGroveError(error, "NO_SUCH_PATH", "NOT_DIRECTORY") ? true : null;
  }
}

async function revoke(context: ClientContext, name: string): Promise<void> {
  const { router } = await context.cluster();
  const revoked = await router
    .revokeAppPassword(name)
    .catch(withHint("BAD_ARGUMENT", "'grove app-password list' shows them."));
  if (context.isJson) return context.printJson({ revoked: revoked === undefined ? null : jsonOf(revoked) });
  await context.print(`Revoked ${revoked?.name ?? name}; what runs with it ends within seconds.`);
}

/** The address that a password opens: one for a folder opens nothing above it. */
export function addressOf(webdavUrl: string, folder: string): string {
  if (webdavUrl === "") return "";
  const names = folder.split("/").filter((name) => name !== "");
  return webdavUrl.replace(/\/?$/u, "/") + names.map((name) => `${encodeURIComponent(name)}/`).join("");
}

/** The end of a password in unix milliseconds. Throws USAGE. */
function endOf(text: string): number {
  const nowMs = systemClock.wallMs();
  const seconds = untilSeconds(text, {
    nowMs,
    timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  });
  if (typeof seconds !== "number") throw new ClientError("USAGE", `--until "${text}": ${seconds.problem}`);
  return seconds * 1_000;
}

/** The folder that a password is for. Throws USAGE for one of another user, and for a file. */
async function folderOf(
  context: ClientContext,
  typed: string,
): Promise<{ readonly id: string; readonly path: string }> {
  const place = await context.resolve(typed);
  if (place.root !== "") throw new ClientError("USAGE", "a password can be for a folder of your own alone");
  const cluster = await context.cluster();
  const attr = await cluster.run("", SHORT, (server) =>
    server.files.changeDir({ path: place.path }, server.unary),
  );
  return { id: attr.id, path: attr.path };
}

function linesOf({
  password,
  hasLeft,
}: {
  readonly password: AppPassword;
  readonly hasLeft: boolean | null;
}): string[] {
  const { id, name, readOnly, folderId, folderPath, createdMs, endsMs, lastUsedMs } = password;
  const where = hasLeft === true ? `what was ${folderPath} when it was made` : folderPath;
  const rights = [readOnly ? "reads" : "reads and writes", folderId === "" ? "everything" : `below ${where}`];
  const used = lastUsedMs === 0n ? "never used" : `last used ${localTime(lastUsedMs)}`;
  const end = endsMs === 0n ? "" : `, ends ${localTime(endsMs)}`;
  return [`${name}  ${rights.join(" ")}`, `  ${id}, made ${localTime(createdMs)}, ${used}${end}`];
}

function jsonOf(password: AppPassword): Record<string, unknown> {
  const { id, name, readOnly, folderId, folderPath, createdMs, endsMs, lastUsedMs } = password;
  const timeOf = (ms: bigint): string | null => (ms === 0n ? null : new Date(Number(ms)).toISOString());
  return {
    id,
    name,
    read_only: readOnly,
    folder: folderId === "" ? null : folderPath,
    created_at: timeOf(createdMs),
    ends_at: timeOf(endsMs),
    last_used_at: timeOf(lastUsedMs),
  };
}
