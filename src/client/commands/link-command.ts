// The verb `link`: makes, lists and revokes links by which people without an account read a folder, or drop files.
import { Command } from "commander";
import { formatBytes, parseBytes } from "#base/bytes.ts";
import { systemClock } from "#base/clock.ts";
import { untilSeconds } from "#base/until-text.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { ONCE, SHORT } from "#client/connection/cluster.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { formatRemotePath } from "#client/connection/remote-path.ts";
import { ClientError, withHint } from "#client/terminal/client-error.ts";
import { localTime } from "#client/terminal/local-time.ts";
import { askSecret } from "#client/terminal/prompt.ts";
import type { Link } from "#wire/proto/gen/grove/v1/file_server_pb.ts";

interface CreateFlags extends ClientFlags {
  readonly drop?: boolean;
  readonly password?: boolean;
  readonly until?: string;
  readonly downloads?: string;
  readonly files?: string;
  readonly bytes?: string;
}

/** Makes the parser of `grove link`. */
export function command(host: CommandHost = processHost()): Command {
  const root = new Command("link")
    .description(
      "Make, list and revoke links. Who has one reads a file or folder of yours in a browser, or drops files into it, without an account. " +
        "What is dropped counts in your quota.",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  grove link create report.pdf   for anybody who gets the address\n  grove link list                which there are",
    )
    .action(() => root.help());
  withClientFlags(
    root
      .command("create")
      .description("Make one. Its address is shown this once.")
      .argument("<path>", "a file or folder of yours; the link goes along when it moves")
      .option("--drop", "files are dropped into the folder; nothing is listed, and nothing read back")
      .option("--password", "ask for a password, which whoever has the link must know (or standard input)")
      .option("--until <when>", 'it ends then: "30d", or "Friday 18:00"; a drop link needs it')
      .option("--downloads <number>", "so many downloads, and no more")
      .option("--files <number>", "of a drop link: so many files (default: 100)")
      .option("--bytes <size>", "of a drop link: so much in all (default: 1GiB)"),
    [
      ["grove link create report.pdf --until 7d", "for a week"],
      ["grove link create photos --password --downloads 20", "for who knows the password"],
      ["grove link create inbox --drop --until 30d --bytes 5GiB", "so that others send you files"],
    ],
  ).action((typed: string, flags: CreateFlags) =>
    host.run("link create", flags, (context) => create(context, typed, flags)),
  );
  withClientFlags(
    root
      .command("list")
      .description("List them with their limits, and how far they are used up.")
      .argument("[path]", "those of this file or folder and below", "/"),
    [["grove link list", "all of them"]],
  ).action((typed: string, flags: ClientFlags) =>
    host.run("link list", flags, (context) => list(context, typed)),
  );
  withClientFlags(
    root
      .command("revoke")
      .description("End one: downloads that are running end too.")
      .argument("<id>", "its id, as the list shows it")
      .argument("[path]", "a place in the root that it opens", "/"),
    [
      ["grove link revoke k3fz7q2mwxab", "when it went to somebody else"],
      ["grove link revoke k3fz7q2mwxab atlas@group:/", "one of a group that you manage"],
    ],
  ).action((id: string, path: string, flags: ClientFlags) =>
    host.run("link revoke", flags, (context) => revoke(context, id, path)),
  );
  return root;
}

async function create(context: ClientContext, typed: string, flags: CreateFlags): Promise<void> {
  const limits = limitsOf(flags);
  const place = await context.resolve(typed);
  const password =
    flags.password === true
      ? await askSecret(context.terminal, "Password of the link: ", context.signal)
      : "";
  if (flags.password === true && password === "") {
    throw new ClientError("USAGE", "an empty password is none; nothing was made");
  }
  const cluster = await context.cluster();
  const drop = flags.drop === true;
  const request = { root: place.root, path: place.path, drop, password, ...limits };
  const { token, link } = await cluster.runAt(place, ONCE, (server) =>
    server.files.createLink(request, server.unary),
  );
  if (link === undefined) throw new ClientError("SERVER_BROKEN", "the server told nothing of the link");
  const door = await cluster.router.doorUrl();
  const url = door === "" ? null : `${door}/l/${token}`;
  if (context.isJson) return context.printJson({ url, token, ...jsonOf(link) });
  await context.print(url ?? token);
  context.note(
    url === null
      ? "Put the address of your cluster's door before it, and /l/; ask your operator for it."
      : "Whoever has this address opens the link. It is shown this once.",
  );
  const where = place.root === "" ? "" : ` ${formatRemotePath({ root: place.root, path: "/" })}`;
  context.note(`To end it: grove link revoke ${link.id}${where}`);
}

async function list(context: ClientContext, typed: string): Promise<void> {
  const place = await context.resolve(typed);
  const cluster = await context.cluster();
  const { root, path } = place;
  const { links } = await cluster.runAt(place, SHORT, (server) =>
    server.files.listLinks({ root, path }, server.unary),
  );
  if (context.isJson) return context.printJson({ path, links: links.map(jsonOf) });
  if (links.length === 0) context.note("There are none; 'grove link create PATH' makes one.");
  await context.print(...links.flatMap((link) => linesOf(link, root)));
}

async function revoke(context: ClientContext, id: string, typed: string): Promise<void> {
  const { root } = await context.resolve(typed);
  const cluster = await context.cluster();
  const { revoked } = await cluster
    .run(root, ONCE, (server) => server.files.revokeLink({ root, id }, server.unary))
    .catch(withHint("NO_SUCH_PATH", "'grove link list' shows them."));
  if (context.isJson) return context.printJson({ revoked: revoked === undefined ? null : jsonOf(revoked) });
  await context.print(`Revoked ${id}, the link to ${revoked?.path ?? "it"}; nobody gets in by it any more.`);
}

function limitsOf(flags: CreateFlags): {
  endsMs: bigint;
  maxDownloads: bigint;
  maxFiles: bigint;
  maxBytes: bigint;
} {
  const drop = flags.drop === true;
  if (drop && flags.until === undefined) {
    throw new ClientError("USAGE", "a link to drop files needs an end", { todo: 'Say --until "30d".' });
  }
  if (drop && flags.downloads !== undefined) {
    throw new ClientError("USAGE", "nothing is downloaded by a link to drop files");
  }
  if (!drop && (flags.files !== undefined || flags.bytes !== undefined)) {
    throw new ClientError("USAGE", "--files and --bytes limit a link to drop files: say --drop too");
  }
  const bytes = parseBytes(flags.bytes ?? "1GiB");
  if (bytes === undefined) throw new ClientError("USAGE", `--bytes "${flags.bytes}" is no size such as 5GiB`);
  return {
    endsMs: flags.until === undefined ? 0n : endOf(flags.until),
    maxDownloads: countOf(flags.downloads ?? "0", "--downloads"),
    maxFiles: drop ? countOf(flags.files ?? "100", "--files") : 0n,
    maxBytes: drop ? bytes : 0n,
  };
}

function countOf(text: string, flag: string): bigint {
  if (/^\d{1,15}$/u.test(text)) return BigInt(text);
  throw new ClientError("USAGE", `${flag} "${text}" is no number`);
}

function endOf(text: string): bigint {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const seconds = untilSeconds(text, { nowMs: systemClock.wallMs(), timeZone });
  if (typeof seconds !== "number") throw new ClientError("USAGE", `--until "${text}": ${seconds.problem}`);
  return BigInt(seconds) * 1_000n;
}

function linesOf(link: Link, root: string): string[] {
  const { id, path, drop, hasPassword, createdMs, endsMs } = link;
  const used = drop
    ? `${link.files} of ${link.maxFiles} files, ${formatBytes(link.bytes)} of ${formatBytes(link.maxBytes)}`
    : `${link.downloads}${link.maxDownloads === 0n ? "" : ` of ${link.maxDownloads}`} downloads`;
  const end = endsMs === 0n ? "no end" : `ends ${localTime(endsMs)}`;
  const kind = `${drop ? "drop" : "read"}${hasPassword ? ", password" : ""}`;
  return [
    `${id}  ${formatRemotePath({ root, path })}  ${kind}`,
    `  made ${localTime(createdMs)}, ${end}, ${used}`,
  ];
}

function jsonOf(link: Link): Record<string, unknown> {
  const timeOf = (ms: bigint): string | null => (ms === 0n ? null : new Date(Number(ms)).toISOString());
  const limitOf = (limit: bigint): bigint | null => (limit === 0n ? null : limit);
  return {
    id: link.id,
    path: link.path,
    drop: link.drop,
    has_password: link.hasPassword,
    created_at: timeOf(link.createdMs),
    ends_at: timeOf(link.endsMs),
    max_downloads: limitOf(link.maxDownloads),
    downloads: link.downloads,
    max_bytes: limitOf(link.maxBytes),
    bytes: link.bytes,
    max_files: limitOf(link.maxFiles),
    files: link.files,
  };
}
