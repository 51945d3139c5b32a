// The verb `put`: uploads files and whole folders.
import { Command } from "commander";
import type { ClientContext } from "#client/connection/client-context.ts";
import { withClientFlags } from "#client/connection/client-flags.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { attrIfThere, isFolder } from "#client/connection/listing.ts";
import { formatRemotePath, type TypedPath } from "#client/connection/remote-path.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { type TransferFlags, wantedSameness, withTransferFlags } from "#client/transfer/comparison-flags.ts";
import { refuseOverlaps } from "#client/transfer/overlaps.ts";
import { isLocalFolder, type PlannedSource, planPut } from "#client/transfer/put-plan.ts";
import { removeSurplus } from "#client/transfer/surplus.ts";
import { TransferFrame, type TransferWords } from "#client/transfer/transfer-frame.ts";
import { TreeUpload } from "#client/transfer/tree-upload.ts";
import { UploadMemory } from "#client/transfer/upload-memory.ts";

/** Makes the parser of `grove put`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    withTransferFlags(
      new Command("put")
        .description(
          "Upload files and whole folders, with their times of change. With two or more words the last is where to: a " +
            "folder to put them into, or a new name. Files that are there are replaced; one that changes while it is read is " +
            "refused, and the others go on. When it was cut, however it was, the same command goes on where it stopped: a " +
            "folder into the same place and without the files that have arrived, a large file within 24 hours. With --update " +
            "or --checksum a folder goes where the last such command sent it, and only what differs is sent.",
        )
        .argument("<path...>", "files and folders of this machine, then where to on the cluster"),
      "move to the trash what is in the target folder and not in the source",
    ),
    [
      ["grove put report.pdf", "into the current folder"],
      ["grove put -r photos /backup", "a folder with all that is in it"],
      ["grove put -r --update photos /backup", "the same again: only what is new or has changed"],
      ["grove put -r --delete photos /backup", "and what is gone from here goes to the trash there"],
      ["grove put a.txt b.txt alice@example.com:/inbox", "into a folder that alice shares with you"],
    ],
  ).action((paths: string[], flags: TransferFlags) =>
    host.run("put", flags, (context) => put(context, paths, flags)),
  );
}

const UPLOAD: TransferWords = {
  verb: "put",
  noun: "upload",
  done: "uploaded",
  moved: "sent",
  again: "To send what is missing",
};

async function put(context: ClientContext, words: readonly string[], flags: TransferFlags): Promise<number> {
  const frame = new TransferFrame(UPLOAD, context, { words, flags });
  const hasTarget = words.length > 1;
  const target = await context.resolve(hasTarget ? (words.at(-1) ?? ".") : ".");
  const { root } = target;
  return frame.run<PlannedSource>({
    target: formatRemotePath(target),
    plan: () => plannedUploads(frame, hasTarget ? words.slice(0, -1) : words, target),
    isFile: (source) => !source.isFolder,
    placeOf: ({ path, remotePath }) => ({ named: path, where: formatRemotePath({ root, path: remotePath }) }),
    async move(plan, runs) {
      const cluster = await context.cluster();
      const upload = new TreeUpload({
        cluster,
        meter: frame.meter,
        report: frame.report,
        memory: new UploadMemory(context.config.uploads),
        note: (text) => frame.note(text),
        root,
        isMirror: frame.isMirror,
        onTop: (source, folder) => runs.isIn(source, folder.id),
      });
      await upload.run(plan);
      const deps = { context, cluster, report: frame.report, root };
      return async () => removeSurplus(deps, await upload.surplus(), flags.yes === true);
    },
    notMirrored: "Nothing was moved to the trash",
  });
}

async function plannedUploads(
  { context, journal, flags, isMirror }: TransferFrame,
  paths: readonly string[],
  target: TypedPath,
): Promise<PlannedSource[]> {
  const sources = paths.map((path) => ({ path, isFolder: isLocalFolder(path) }));
  const cluster = await context.cluster();
  const there = await attrIfThere(cluster, target);
  const isInto = there !== undefined && isFolder(there);
  const [only] = sources;
  if (!isInto && (sources.length > 1 || (target.isFolder && only?.isFolder !== true))) {
    throw new ClientError("USAGE", `${formatRemotePath(target)} is not a folder on the cluster`, {
      todo: `Make it first: grove mkdir ${formatRemotePath(target)}`,
    });
  }
  const plan: PlannedSource[] = [];
  const isAlone = sources.length === 1;
  const wanted = wantedSameness(flags);
  for (const source of sources)
    plan.push(await planPut({ context, cluster, journal, target, there, wanted, isAlone }, source));
  if (isMirror) refuseOverlaps(plan.map(({ remotePath }) => remotePath));
  requireOwnPlaces(plan);
  return plan;
}

/** Of two sources in one place the last one sent would replace the other. */
function requireOwnPlaces(plan: readonly PlannedSource[]): void {
  const taken = new Map<string, string>();
  for (const { path, remotePath } of plan) {
    const other = taken.get(remotePath);
    if (other !== undefined)
      throw new ClientError("USAGE", `two of them, ${other} and ${path}, would become ${remotePath}`, {
        todo: "Send them one after the other, into different folders.",
      });
    taken.set(remotePath, path);
  }
}
