// The verb `trash`: lists deleted items, restores them, and empties the trash for good (D14).

import { Command, InvalidArgumentError, Option } from "commander";
import { formatBytes } from "#base/bytes.ts";
import { systemClock } from "#base/clock.ts";
import { formatDuration, parseDuration } from "#base/duration.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { stringify64 } from "#base/json64.ts";
import { LIST_PAGE_MAX } from "#base/limits.ts";
import { canonicalUsername } from "#base/names.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { type Cluster, LONG, ONCE, SHORT } from "#client/connection/cluster.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { forEachNamed } from "#client/connection/each-named.ts";
import { pages } from "#client/connection/pages.ts";
import { baseName, formatRemotePath, parentPath } from "#client/connection/remote-path.ts";
import { ClientError, HintedRefusal } from "#client/terminal/client-error.ts";
import { EXIT } from "#client/terminal/exit-codes.ts";
import { askToGoOn } from "#client/terminal/prompt.ts";
import { writeAll } from "#client/terminal/terminal.ts";
import { terminalJson } from "#client/terminal/terminal-text.ts";
import type { OperatorLook, ShowTrashResponse, TrashItem } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { attrJson } from "./attr-text.ts";
import { CONFLICTS, type ConflictFlags, conflictOption } from "./conflict-flag.ts";
import {
  listOf,
  looksJson,
  type OperatorFlags,
  operatorOptions,
  restoreOf,
  tellLooks,
} from "./operator-trash.ts";
import { isTrashId, trashJson, trashRow } from "./trash-text.ts";

const WHOSE = "whose: a group's, or a root that was handed over to you; your own without it";
const EMPTY = "The trash is empty.";

interface ListFlags extends ClientFlags, OperatorFlags {}

interface RestoreFlags extends ClientFlags, ConflictFlags, OperatorFlags {
  readonly to?: string;
}

interface EmptyFlags extends ClientFlags {
  readonly olderThan?: number;
  readonly yes?: boolean;
  readonly force?: boolean;
}

/** Makes the parser of `grove trash` with its verbs. */
export function command(host: CommandHost = processHost()): Command {
  return new Command("trash")
    .description("List what 'grove rm' has put away, bring it back, or let it go for good.")
    .addCommand(listCommand(host))
    .addCommand(restoreCommand(host))
    .addCommand(emptyCommand(host))
    .addHelpText(
      "after",
      "\nExamples:\n  grove trash ls                    what is there, the newest first\n" +
        "  grove trash restore docs/a.txt    back to where it was\n  grove trash empty --older-than 7d   for good; asks first",
    );
}

function listCommand(host: CommandHost): Command {
  const verb = new Command("ls")
    .description(
      "List your trash, the newest first: id, when it was trashed, size, until when it is kept, by whom, where it was.",
    )
    .argument("[root]", WHOSE);
  for (const option of operatorOptions()) verb.addOption(option);
  return withClientFlags(verb, [
    ["grove trash ls", "all of it"],
    ["grove trash ls atlas@group", "that of a group, for members who delete"],
    ["grove trash ls --json", "the same for a program"],
    ["grove trash ls --of bob@example.com --reason 'ticket 4711'", "bob's, for administrators"],
  ]).action((root: string | undefined, flags: ListFlags) =>
    host.run("trash", flags, (context) => {
      const { of } = flags;
      if (of === undefined) return list(context, rootOf(root));
      if (root === undefined) return listOf(context, of, flags);
      throw new ClientError("USAGE", "--of says whose trash, and so does the word before it: name one");
    }),
  );
}

function restoreCommand(host: CommandHost): Command {
  const verb = new Command("restore")
    .description(
      "Bring something back, by its id or by where it was (then the newest). Folders that are missing are made again.",
    )
    .argument("<id-or-path...>", "what 'grove rm' and 'grove trash ls' show")
    .option("--to <path>", "bring it there instead of where it was")
    .addOption(conflictOption("the name"));
  for (const option of operatorOptions()) verb.addOption(option);
  return withClientFlags(verb, [
    ["grove trash restore docs/a.txt", "the newest that was deleted there"],
    ["grove trash restore atlas@group:/a.txt", "the same of a group, for members who delete"],
    ["grove trash restore atlas@group:0mhx3k2a1-1z141z5", "one item of it, by its id"],
    ["grove trash restore 0mhx3k2a1-1z141z5 --to /found/a.txt", "one item, elsewhere"],
    ["grove trash restore docs/a.txt --on-conflict keep-both", "becomes 'a (2).txt' if there is one"],
  ]).action((typed: string[], flags: RestoreFlags) =>
    host.run("trash", flags, async (context) => {
      if (flags.to !== undefined && typed.length > 1) {
        throw new ClientError("USAGE", "--to is the new path of one item, and more than one is named");
      }
      const { of } = flags;
      if (of === undefined)
        return forEachNamed(context, "trash", typed, (text) => restore(context, text, flags));
      // A wrong password of an operator is not sent again for each.
      for (const text of typed) await restoreOf(context, text, { ...flags, of });
      return EXIT.ok;
    }),
  );
}

function emptyCommand(host: CommandHost): Command {
  return withClientFlags(
    new Command("empty")
      .description("Delete what is in your trash for good. Asks first on a terminal.")
      .argument("[root]", WHOSE)
      .addOption(
        new Option("--older-than <span>", "only what was trashed longer ago, such as 7d or 12h").argParser(
          parseSpan,
        ),
      )
      .option("-y, --yes", "do not ask")
      .option("-f, --force", "the same"),
    [
      ["grove trash empty", "everything, after a question"],
      ["grove trash empty --older-than 7d --yes", "what has been there for a week, without one"],
      ["grove trash empty atlas@group", "that of a group, for members who delete"],
    ],
  ).action((root: string | undefined, flags: EmptyFlags) =>
    host.run("trash", flags, (context) => empty(context, rootOf(root), flags)),
  );
}

/** The root that somebody names, with or without what makes it a path; empty for one's own. Throws BAD_ARGUMENT. */
function rootOf(typed: string | undefined): string {
  return typed === undefined ? "" : canonicalUsername(typed.replace(/:\/?$/u, ""));
}

async function list(context: ClientContext, root: string): Promise<void> {
  const cluster = await context.cluster();
  let isEmpty = true;
  let looks: readonly OperatorLook[] = [];
  const onLooks = (found: readonly OperatorLook[]): void => {
    looks = found;
  };
  for await (const { items: page } of trashPages(cluster, root, onLooks)) {
    const own = (await context.identity.current())?.username ?? "";
    if (context.isJson) {
      const rows = page.map((item) => stringify64(trashJson(item))).join(",\n");
      await writeJson(context, `${isEmpty ? '{"items":[\n' : ",\n"}${rows}`);
    } else await context.print(...page.map((item) => trashRow(item, own)));
    isEmpty = false;
  }
  const seen = looks.length === 0 ? "" : `,"operator_looks":${looksJson(looks)}`;
  if (context.isJson) await writeJson(context, `${isEmpty ? '{"items":[]' : "\n]"}${seen}}\n`);
  else if (isEmpty) context.note(EMPTY);
  tellLooks(context, looks);
}

async function writeJson(context: ClientContext, text: string): Promise<void> {
  await writeAll(context.terminal.output, terminalJson(text), context.signal);
}

async function restore(context: ClientContext, typed: string, flags: RestoreFlags): Promise<void> {
  const cluster = await context.cluster();
  const { root, item } = await findItem(context, cluster, typed);
  const target = flags.to === undefined ? undefined : await context.resolve(flags.to);
  if (target !== undefined && target.root !== root) {
    const where =
      root === "" ? "your trash can be brought back into your own root" : "it can be brought back there";
    throw new ClientError("USAGE", `${where} only`);
  }
  const place = target ?? { root, path: item.originalPath };
  const request = { root, trashId: item.trashId, targetPath: target?.path ?? "" };
  const attr = await cluster
    .runAt(place, ONCE, (server) =>
      server.files.restoreFile({ ...request, onConflict: CONFLICTS[flags.onConflict] }, server.unary),
    )
    .catch((error: unknown) => {
      if (!isGroveError(error, "PATH_EXISTS")) throw error;
      const taken = new GroveError("PATH_EXISTS", `${place.path} is there again`, { cause: error });
      throw new HintedRefusal(taken, "Add --on-conflict keep-both or replace, or --to and another path.");
    });
  const shares = item.formerShares.map(({ path, user }) => ({
    path: `${attr.path}${path.slice(item.originalPath.length)}`,
    user,
  }));
  if (context.isJson) {
    await context.printJson({ ...attrJson(attr), trash_id: item.trashId, former_shares: shares });
    return;
  }
  context.note(`${formatRemotePath({ root, path: attr.path })} is back.`);
  if (shares.length > 0) context.note("It is shared with nobody now. To share it again as it was:");
  for (const { path, user } of shares)
    context.note(`  grove share ${formatRemotePath({ root, path })} ${user}`);
}

/** The item with an id, or the newest that was trashed from a path, and its root. */
async function findItem(
  context: ClientContext,
  cluster: Cluster,
  typed: string,
): Promise<{ readonly root: string; readonly item: TrashItem }> {
  const find = async (
    root: string,
    query: { trashId?: string; originalPath?: string },
  ): Promise<TrashItem[]> => {
    const page = await cluster.run(root, SHORT, (server) =>
      server.files.showTrash({ root, pageSize: 2, ...query }, server.unary),
    );
    return page.items;
  };
  const [byId] = isTrashId(typed) ? await find("", { trashId: typed }) : [];
  if (byId !== undefined) return { root: "", item: byId };
  const { root, path } = await context.resolve(typed);
  const id = baseName(path);
  const [there] =
    root !== "" && parentPath(path) === "/" && isTrashId(id) ? await find(root, { trashId: id }) : [];
  if (there !== undefined) return { root, item: there };
  const [newest, older] = await find(root, { originalPath: path });
  const listing = root === "" ? "grove trash ls" : `grove trash ls ${root}`;
  if (newest === undefined) {
    const text =
      root === ""
        ? `nothing in your trash was at ${path}, or has this id`
        : `nothing in the trash of ${root} was at ${path}`;
    const missing = new GroveError("NO_SUCH_PATH", text);
    throw new HintedRefusal(missing, `'${listing}' shows what there is.`);
  }
  if (older !== undefined)
    context.note(`More than one was deleted at ${path}: this is the newest. '${listing}' shows all.`);
  return { root, item: newest };
}

async function empty(context: ClientContext, root: string, flags: EmptyFlags): Promise<void> {
  const cluster = await context.cluster();
  const { olderThan } = flags;
  // The ids of each page as one text: a trash may have very many items.
  const counted: string[] = [];
  let count = 0;
  let bytes = 0n;
  for await (const { items: page, nowMs } of trashPages(cluster, root)) {
    const due = page.filter(
      ({ trashedAtMs }) => olderThan === undefined || trashedAtMs < nowMs - BigInt(olderThan),
    );
    if (due.length === 0) continue;
    counted.push(due.map(({ trashId }) => trashId).join(","));
    count += due.length;
    for (const { size } of due) bytes += size;
  }
  const trash = root === "" ? "the trash" : `the trash of ${root}`;
  const what = olderThan === undefined ? trash : `what has been in ${trash} for ${formatDuration(olderThan)}`;
  if (count === 0) {
    if (context.isJson) await context.printJson({ purged_items: 0, freed_bytes: 0 });
    else context.note(olderThan === undefined ? EMPTY : `Nothing is ${formatDuration(olderThan)} old.`);
    return;
  }
  const question = `Delete ${what} for good: ${itemCount(count)}, which frees ${formatBytes(bytes)}? [y/N] `;
  const isSure = flags.yes === true || flags.force === true;
  if (!isSure && !(await askToGoOn(context, question))) return;
  const done = await purge(cluster, root, counted);
  if (context.isJson) {
    await context.printJson({ purged_items: done.items, freed_bytes: done.bytes });
  } else context.note(`Deleted for good: ${itemCount(done.items)}, ${formatBytes(done.bytes)}.`);
}

/**
 * Deletes the counted items for good. By their ids: what was trashed since may have an earlier time, where the
 * server's clock was set back.
 */
async function purge(
  cluster: Cluster,
  root: string,
  counted: readonly string[],
): Promise<{ items: bigint; bytes: bigint }> {
  let [items, bytes] = [0n, 0n];
  for (const ids of counted) {
    const reply = await cluster.run(root, LONG, (server) =>
      server.files.purgeTrash({ root, trashIds: ids.split(",") }, server.stream),
    );
    items += reply.purgedItems;
    bytes += reply.freedBytes;
  }
  return { items, bytes };
}

/** Pages with an item at least, each with the time of the clock that its items' times are of. */
async function* trashPages(
  cluster: Cluster,
  root: string,
  onLooks: (looks: readonly OperatorLook[]) => void = () => {},
): AsyncGenerator<{ readonly items: readonly TrashItem[]; readonly nowMs: bigint }, void, undefined> {
  const read = (pageToken: string): Promise<ShowTrashResponse> =>
    cluster.run(root, SHORT, (server) =>
      server.files.showTrash({ root, pageSize: LIST_PAGE_MAX, pageToken }, server.unary),
    );
  for await (const { items, operatorLooks, nowMs } of pages(
    read,
    (page) => page.items,
    "the server's list of the trash",
  )) {
    if (operatorLooks.length > 0) onLooks(operatorLooks);
    // A server of 0.1.0 does not tell its time.
    if (items.length > 0) yield { items, nowMs: nowMs === 0n ? BigInt(systemClock.wallMs()) : nowMs };
  }
}

function itemCount(count: number | bigint): string {
  return `${count} item${BigInt(count) === 1n ? "" : "s"}`;
}

function parseSpan(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined) {
    throw new InvalidArgumentError("write a span such as 7d, 12h or 30m.");
  }
  return ms;
}
