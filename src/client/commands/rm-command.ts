// The verb `rm`: deletes files and folders.
import { Command } from "commander";
import { formatBytes } from "#base/bytes.ts";
import { isGroveError } from "#base/errors.ts";
import { shellWord } from "#base/shell-word.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { ONCE } from "#client/connection/cluster.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { forEachNamed } from "#client/connection/each-named.ts";
import { attrOf, isFolder } from "#client/connection/listing.ts";
import { formatRemotePath, type TypedPath } from "#client/connection/remote-path.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { askToGoOn } from "#client/terminal/prompt.ts";

interface RmFlags extends ClientFlags {
  readonly recursive?: boolean;
  readonly permanent?: boolean;
  readonly yes?: boolean;
  readonly force?: boolean;
}

/** Makes the parser of `grove rm`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("rm")
      .description("Delete files and folders: into the trash, or with --permanent for good.")
      .argument("<path...>", "files or folders on the cluster")
      .option("-r, --recursive", "folders too, with all that is in them")
      .option("--permanent", "for good, without the trash; asks first, so a script needs --yes")
      .option("-y, --yes", "do not ask")
      .option("-f, --force", "do not ask, and what is not there is no error"),
    [
      ["grove rm old.txt", "into the trash; 'grove trash restore old.txt' brings it back"],
      ["grove rm -r --permanent build", "a folder for good, after a question"],
      ["grove rm --permanent --yes a.tmp b.tmp", "for good, without a question"],
    ],
  ).action((paths: string[], flags: RmFlags) =>
    host.run("rm", flags, (context) =>
      forEachNamed(context, "rm", paths, async (typed) => {
        try {
          await remove(context, await context.resolve(typed), flags);
        } catch (error) {
          if (flags.force !== true || !isGroveError(error, "NO_SUCH_PATH")) throw error;
        }
      }),
    ),
  );
}

async function remove(context: ClientContext, path: TypedPath, flags: RmFlags): Promise<void> {
  if (path.path === "/") throw new ClientError("USAGE", "a root cannot be deleted");
  if (flags.permanent === true) await removeForGood(context, path, flags);
  else await moveToTrash(context, path, flags);
}

async function moveToTrash(context: ClientContext, path: TypedPath, flags: RmFlags): Promise<void> {
  const cluster = await context.cluster();
  if (flags.recursive !== true && isFolder(await attrOf(cluster, path))) throw isAFolder(path);
  try {
    const { item } = await cluster.runAt(path, ONCE, (server) =>
      server.files.trashFile({ root: path.root, path: path.path }, server.unary),
    );
    const trashId = item?.trashId ?? "";
    if (context.isJson) await context.printJson({ path: path.path, trash_id: trashId });
    else {
      const what = formatRemotePath(path);
      // An id is looked for in one's own trash.
      const named = path.root === "" ? trashId : shellWord(what);
      context.note(`${what} is in the trash. To bring it back: grove trash restore ${named}`);
    }
  } catch (error) {
    if (!isGroveError(error, "NOT_IMPLEMENTED")) throw error;
    const recursive = flags.recursive === true ? "-r " : "";
    throw new ClientError("USAGE", "this server has no trash yet, so nothing was deleted", {
      todo: `To delete it for good, type: grove rm ${recursive}--permanent ${formatRemotePath(path)}`,
      cause: error,
    });
  }
}

async function removeForGood(context: ClientContext, path: TypedPath, flags: RmFlags): Promise<void> {
  const cluster = await context.cluster();
  const isAsked = flags.yes !== true && flags.force !== true;
  if (isAsked || flags.recursive !== true) {
    const attr = await attrOf(cluster, path);
    if (isFolder(attr) && flags.recursive !== true) throw isAFolder(path);
    const what = isFolder(attr) ? `the folder ${attr.path} with all that is in it` : attr.path;
    const question = `Delete ${what} (${formatBytes(attr.size)}) for good? [y/N] `;
    if (isAsked && !(await askToGoOn(context, question))) return;
  }
  const reply = await cluster.runAt(path, ONCE, (server) =>
    server.files.deleteFile(
      { root: path.root, path: path.path, recursive: flags.recursive === true },
      server.unary,
    ),
  );
  if (context.isJson) {
    await context.printJson({
      path: path.path,
      freed_bytes: reply.freedBytes,
      inode_count: reply.inodeCount,
    });
  }
}

function isAFolder(path: TypedPath): ClientError {
  return new ClientError("USAGE", `${path.path} is a folder`, {
    todo: "Add -r to delete it with all that is in it.",
  });
}
