// The verb `get`: downloads files and whole folders.
import { realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve as resolveLocal } from "node:path";
import { Command } from "commander";
import { systemClock } from "#base/clock.ts";
import type { Attr } from "#proto/gen/grove/v1/common_pb.ts";
import type { ClientContext } from "./client-context.ts";
import { ClientError, localFailure } from "./client-error.ts";
import { type ClientFlags, withClientFlags } from "./client-flags.ts";
import { type CommandHost, processHost } from "./command-host.ts";
import { attrOf, isFolder } from "./listing.ts";
import { removeUnfinishedFiles } from "./local-file.ts";
import { ProgressDisplay, ProgressMeter } from "./progress.ts";
import { baseName, formatRemotePath, type TypedPath } from "./remote-path.ts";
import { TransferReport } from "./transfer-report.ts";
import { type DownloadSource, TreeDownload } from "./tree-download.ts";

interface GetFlags extends ClientFlags {
  readonly recursive?: boolean;
  readonly quiet?: boolean;
}

/** Makes the parser of `grove get`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("get")
      .description(
        "Download files and whole folders, with their times of change. With two or more words the last is where to on " +
          "this machine: a folder to put them into, or a new name. Each file takes its name only when all of it is " +
          "there and its checksum is right, and the rights of the file that it replaces; of a large one that was cut the " +
          "part stays, and the same command goes on from it.",
      )
      .argument("<path...>", "files and folders on the cluster, then where to on this machine")
      .option("-r, --recursive", "folders with all that is in them (also without it, when a folder is named)")
      .option("-q, --quiet", "say nothing unless something fails"),
    [
      ["grove get report.pdf", "into the folder of this machine you are in"],
      ["grove get -r /backup/photos ~/restored", "a folder with all that is in it"],
      ["grove get alice@example.com:/plan.txt .", "a file that alice shares with you"],
    ],
  ).action((paths: string[], flags: GetFlags) =>
    host.run("get", flags, (context) => download(context, paths, flags)),
  );
}

async function download(context: ClientContext, words: readonly string[], flags: GetFlags): Promise<number> {
  const hasTarget = words.length > 1;
  const target = hasTarget ? (words.at(-1) ?? ".") : ".";
  const typed = hasTarget ? words.slice(0, -1) : words;
  const cluster = await context.cluster();
  const sources: { path: TypedPath; attr: Attr }[] = [];
  for (const text of typed) {
    const path = await context.resolve(text);
    sources.push({ path, attr: await attrOf(cluster, path) });
  }
  const plan = placesOf(sources, target);
  const meter = new ProgressMeter(systemClock);
  const display = new ProgressDisplay(
    context.terminal,
    meter,
    "downloaded",
    flags.quiet === true || context.isJson,
  );
  const report = new TransferReport(context, display, meter, { isQuiet: flags.quiet === true });
  // Also when the program is left in a hurry.
  process.once("exit", removeUnfinishedFiles);
  try {
    await new TreeDownload({
      cluster,
      meter,
      report,
      note: (text) => {
        if (!context.isJson) display.note(text);
      },
    }).run(plan);
  } finally {
    display.stop();
    removeUnfinishedFiles();
    process.off("exit", removeUnfinishedFiles);
  }
  return report.end("downloaded");
}

function placesOf(sources: readonly { path: TypedPath; attr: Attr }[], target: string): DownloadSource[] {
  const isInto = isLocalFolder(target);
  if (
    !isInto &&
    (sources.length > 1 || (target.endsWith("/") && sources.some(({ attr }) => !isFolder(attr))))
  ) {
    throw new ClientError("USAGE", `${target} is not a folder on this machine`, {
      todo: "Make it first: mkdir",
    });
  }
  const names = new Set<string>();
  return sources.map(({ path, attr }) => {
    // The name comes from what was typed, never from what the server answered.
    const name = baseName(path.path);
    if (isInto && name === "" && sources.length > 1) {
      throw new ClientError("USAGE", `${formatRemotePath(path)} is a root and has no name`, {
        todo: "Fetch it alone, into a new folder: grove get -r / my-files",
      });
    }
    if (names.has(name)) throw new ClientError("USAGE", `two of them are called ${name}`);
    names.add(name);
    // A root has no name, so its content goes into the folder itself, through a link if that is what was named.
    const into = isInto && name === "" ? realpathSync(target) : join(target, name);
    const local = resolveLocal(isInto ? into : target);
    const folder = dirname(local);
    if (!isLocalFolder(folder)) {
      throw new ClientError("LOCAL_NOT_FOUND", `the folder ${folder} does not exist on this machine`, {
        todo: "Make it first: mkdir -p",
      });
    }
    return { root: path.root, path: path.path, attr, localFolder: folder, localName: basename(local) };
  });
}

function isLocalFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw localFailure(error, path);
  }
}
