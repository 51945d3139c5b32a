// The verb `get`: downloads files and whole folders.
import { join } from "node:path";
import { Command } from "commander";
import { systemClock } from "#base/clock.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { withClientFlags } from "#client/connection/client-flags.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { attrOf, isFolder } from "#client/connection/listing.ts";
import { type TransferFlags, wantedSameness, withTransferFlags } from "#client/transfer/comparison-flags.ts";
import { folderIdAt, type NamedRemote, type PlannedDownload, planGet } from "#client/transfer/get-plan.ts";
import { removeUnfinishedFiles } from "#client/transfer/local-file.ts";
import { putAside } from "#client/transfer/local-surplus.ts";
import { TransferFrame, type TransferWords } from "#client/transfer/transfer-frame.ts";
import { TreeDownload } from "#client/transfer/tree-download.ts";

/** Makes the parser of `grove get`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    withTransferFlags(
      new Command("get")
        .description(
          "Download files and whole folders, with their times of change. With two or more words the last is where to on " +
            "this machine: a folder to put them into, or a new name. Each file takes its name only when all of it is " +
            "there and its checksum is right, and the rights of the file that it replaces. When it was cut, however it was, " +
            "the same command goes on where it stopped: a folder into the same place and without the files that have " +
            "arrived, a large file from the part that stays of it. With --update or --checksum a folder goes where the last " +
            "such command put it, and only what differs is fetched.",
        )
        .argument("<path...>", "files and folders on the cluster, then where to on this machine"),
      "move what is in the target folder and not on the cluster into a folder beside it",
    ),
    [
      ["grove get report.pdf", "into the folder of this machine you are in"],
      ["grove get -r /backup/photos ~/restored", "a folder with all that is in it"],
      ["grove get -r --update /backup/photos ~/restored", "the same again: only what is new or has changed"],
      ["grove get alice@example.com:/plan.txt .", "a file that alice shares with you"],
    ],
  ).action((paths: string[], flags: TransferFlags) =>
    host.run("get", flags, (context) => get(context, paths, flags)),
  );
}

const DOWNLOAD: TransferWords = {
  verb: "get",
  noun: "download",
  done: "downloaded",
  moved: "fetched",
  again: "To fetch what is missing",
};

async function get(context: ClientContext, words: readonly string[], flags: TransferFlags): Promise<number> {
  const frame = new TransferFrame(DOWNLOAD, context, { words, flags });
  const target = words.length > 1 ? (words.at(-1) ?? ".") : ".";
  // Also when a signal ends the program early.
  process.once("exit", removeUnfinishedFiles);
  try {
    return await frame.run<PlannedDownload>({
      target,
      plan: () => plannedDownloads(frame, target),
      isFile: ({ attr }) => !isFolder(attr),
      placeOf: (source) => ({
        named: source.path,
        where: source.run?.record.placed ?? join(source.localFolder, source.localName),
      }),
      async move(plan, runs) {
        const download = new TreeDownload({
          cluster: await context.cluster(),
          meter: frame.meter,
          report: frame.report,
          note: (text) => frame.note(text),
          onTop: (source) => runs.isIn(source, folderIdAt(join(source.localFolder, source.localName))),
        });
        await download.run(plan);
        const deps = { context, report: frame.report, nowMs: systemClock.wallMs() };
        return () => putAside(deps, download.surplus, flags.yes === true);
      },
      notMirrored: "Nothing was moved away",
    });
  } finally {
    removeUnfinishedFiles();
    process.off("exit", removeUnfinishedFiles);
  }
}

async function plannedDownloads(frame: TransferFrame, target: string): Promise<PlannedDownload[]> {
  const { context, words, journal, isMirror } = frame;
  const cluster = await context.cluster();
  const sources: NamedRemote[] = [];
  for (const text of words.length > 1 ? words.slice(0, -1) : words) {
    const path = await context.resolve(text);
    sources.push({ path, attr: await attrOf(cluster, path) });
  }
  const wanted = wantedSameness(frame.flags);
  return planGet({ context, journal, target, wanted, isMirror }, sources);
}
