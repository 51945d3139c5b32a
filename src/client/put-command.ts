// The verb `put`: uploads files and whole folders.

import { statSync } from "node:fs";
import { basename, resolve as resolveLocal } from "node:path";
import { Command } from "commander";
import { systemClock } from "#base/clock.ts";
import { canonicalName } from "#base/names.ts";
import type { ClientContext } from "./client-context.ts";
import { ClientError, localFailure } from "./client-error.ts";
import { type ClientFlags, withClientFlags } from "./client-flags.ts";
import { type CommandHost, processHost } from "./command-host.ts";
import { attrIfThere, isFolder } from "./listing.ts";
import { ProgressDisplay, ProgressMeter } from "./progress.ts";
import { childPath, formatRemotePath, type TypedPath } from "./remote-path.ts";
import { TransferReport } from "./transfer-report.ts";
import { TreeUpload, type UploadSource } from "./tree-upload.ts";
import { UploadMemory } from "./upload-memory.ts";

interface PutFlags extends ClientFlags {
  readonly recursive?: boolean;
  readonly quiet?: boolean;
}

/** Makes the parser of `grove put`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("put")
      .description(
        "Upload files and whole folders, with their times of change. With two or more words the last is where to: a " +
          "folder to put them into, or a new name. Files that are there are replaced; one that changes while it is read is " +
          "refused, and the others go on. A large file whose upload was cut, " +
          "however it was, goes on where it stopped when the same command is given again within 24 hours.",
      )
      .argument("<path...>", "files and folders of this machine, then where to on the cluster")
      .option("-r, --recursive", "folders with all that is in them (also without it, when a folder is named)")
      .option("-q, --quiet", "say nothing unless something fails"),
    [
      ["grove put report.pdf", "into the current folder"],
      ["grove put -r photos /backup", "a folder with all that is in it"],
      ["grove put a.txt b.txt alice@example.com:/inbox", "into a folder that alice shares with you"],
    ],
  ).action((paths: string[], flags: PutFlags) =>
    host.run("put", flags, (context) => upload(context, paths, flags)),
  );
}

async function upload(context: ClientContext, words: readonly string[], flags: PutFlags): Promise<number> {
  const hasTarget = words.length > 1;
  const locals = hasTarget ? words.slice(0, -1) : words;
  const target = await context.resolve(hasTarget ? (words.at(-1) ?? ".") : ".");
  const sources = locals.map((path) => ({ path, isFolder: isLocalFolder(path) }));
  const cluster = await context.cluster();
  const there = await attrIfThere(cluster, target);
  const isInto = there !== undefined && isFolder(there);
  const [only] = sources;
  if (!isInto && (sources.length > 1 || (target.isFolder && only?.isFolder !== true))) {
    throw new ClientError("USAGE", `${formatRemotePath(target)} is not a folder on the cluster`, {
      todo: `Make it first: grove mkdir ${formatRemotePath(target)}`,
    });
  }
  const meter = new ProgressMeter(systemClock);
  const display = new ProgressDisplay(
    context.terminal,
    meter,
    "uploaded",
    flags.quiet === true || context.isJson,
  );
  const report = new TransferReport(context, display, meter, { isQuiet: flags.quiet === true });
  try {
    const plan = sources.map((source) => placeOf(source, target, isInto));
    await new TreeUpload({
      cluster,
      meter,
      report,
      memory: new UploadMemory(context.config.uploads),
      note: (text) => {
        if (!context.isJson) display.note(text);
      },
      root: target.root,
    }).run(plan);
  } finally {
    display.stop();
  }
  return report.end("uploaded");
}

function placeOf(
  source: { readonly path: string; readonly isFolder: boolean },
  target: TypedPath,
  isInto: boolean,
): UploadSource {
  // `put .` and `put ..` have a name too: that of the folder they lead to.
  const name = basename(resolveLocal(source.path));
  if (isInto && name === "")
    throw new ClientError("USAGE", "the root of this machine has no name", {
      todo: "Name a new folder as the target.",
    });
  const path = isInto ? childPath(target.path, canonicalName(name)) : target.path;
  return { ...source, remotePath: path };
}

function isLocalFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    throw localFailure(error, path);
  }
}
