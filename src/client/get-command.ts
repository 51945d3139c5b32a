// The verb `get`: downloads files and whole folders.
import { join } from "node:path";
import { Command } from "commander";
import { systemClock } from "#base/clock.ts";
import type { ClientContext } from "./client-context.ts";
import { withClientFlags } from "./client-flags.ts";
import { type CommandHost, processHost } from "./command-host.ts";
import { repeatedFlags, type TransferFlags, wantedSameness, withTransferFlags } from "./comparison-flags.ts";
import { folderIdAt, type NamedRemote, type PlannedDownload, planGet } from "./get-plan.ts";
import { attrOf, isFolder } from "./listing.ts";
import { removeUnfinishedFiles } from "./local-file.ts";
import { putAside } from "./local-surplus.ts";
import { localTime } from "./local-time.ts";
import { ProgressDisplay, ProgressMeter } from "./progress.ts";
import { checkCanAsk } from "./surplus.ts";
import { TransferJournal, TransferRuns } from "./transfer-journal.ts";
import { TransferReport } from "./transfer-report.ts";
import { arrivedText, commandLine, goOnText, interrupted } from "./transfer-words.ts";
import { type DownloadSource, TreeDownload } from "./tree-download.ts";

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
    host.run("get", flags, (context) => new Get(context, paths, flags).run()),
  );
}

class Get {
  readonly #context: ClientContext;
  readonly #words: readonly string[];
  readonly #flags: TransferFlags;
  readonly #target: string;
  readonly #isQuiet: boolean;
  readonly #meter = new ProgressMeter(systemClock);
  readonly #display: ProgressDisplay;
  readonly #report: TransferReport;
  readonly #journal: TransferJournal;

  constructor(context: ClientContext, words: readonly string[], flags: TransferFlags) {
    this.#context = context;
    this.#words = words;
    this.#flags = flags;
    this.#target = words.length > 1 ? (words.at(-1) ?? ".") : ".";
    this.#isQuiet = flags.quiet === true;
    const isSilent = this.#isQuiet || context.isJson;
    this.#display = new ProgressDisplay(context.terminal, this.#meter, "downloaded", isSilent);
    this.#report = new TransferReport(context, this.#display, this.#meter, { isQuiet: this.#isQuiet });
    this.#journal = new TransferJournal(context.config.transfers);
  }

  async run(): Promise<number> {
    // Also when the program is left in a hurry.
    process.once("exit", removeUnfinishedFiles);
    try {
      if (this.#flags.delete === true) checkCanAsk(this.#context, this.#flags.yes === true);
      const plan = await this.#plan();
      const command = this.#commandToGoOn(plan);
      try {
        await this.#download(plan);
      } catch (error) {
        this.#display.stop();
        throw this.#tellOfCut(error, plan, command);
      }
      this.#display.stop();
      const code = await this.#report.end("downloaded");
      if (this.#report.hasFailed) this.#context.note(`To fetch what is missing, type: ${command}`);
      return code;
    } finally {
      this.#display.stop();
      removeUnfinishedFiles();
      process.off("exit", removeUnfinishedFiles);
    }
  }

  async #plan(): Promise<PlannedDownload[]> {
    const context = this.#context;
    const typed = this.#words.length > 1 ? this.#words.slice(0, -1) : this.#words;
    const cluster = await context.cluster();
    const sources: NamedRemote[] = [];
    for (const text of typed) {
      const path = await context.resolve(text);
      sources.push({ path, attr: await attrOf(cluster, path) });
    }
    const wanted = wantedSameness(this.#flags);
    const isMirror = this.#flags.delete === true;
    return planGet({ context, journal: this.#journal, target: this.#target, wanted, isMirror }, sources);
  }

  async #download(plan: readonly PlannedDownload[]): Promise<void> {
    const runs = new TransferRuns<DownloadSource>(this.#journal);
    for (const source of plan) {
      if (source.run === undefined) continue;
      await runs.begin(source, source.run);
      this.#tellOfGoingOn(source);
    }
    const download = new TreeDownload({
      cluster: await this.#context.cluster(),
      meter: this.#meter,
      report: this.#report,
      note: (text) => {
        if (!this.#context.isJson) this.#display.note(text);
      },
      onTop: (source) => runs.isIn(source, folderIdAt(join(source.localFolder, source.localName))),
    });
    await download.run(plan);
    const isWhole = !this.#report.hasFailed;
    if (isWhole) await runs.end();
    if (this.#flags.delete !== true) return;
    this.#display.stop();
    if (isWhole) {
      const deps = { context: this.#context, report: this.#report, nowMs: systemClock.wallMs() };
      await putAside(deps, download.surplus, this.#flags.yes === true);
    } else this.#context.note("Nothing was moved away, since not everything has arrived.");
  }

  #tellOfGoingOn({ path, run, goesOn }: PlannedDownload): void {
    if (goesOn === undefined || this.#isQuiet || this.#context.isJson) return;
    const when = localTime(goesOn.startedMs);
    this.#display.note(`${path}: going on in ${run?.record.placed}, where the download of ${when} was cut`);
  }

  /** Says how much has arrived and what to type, whatever has cut it. */
  #tellOfCut(error: unknown, plan: readonly PlannedDownload[], command: string): unknown {
    const [only] = plan;
    const isOne = plan.length === 1 && only !== undefined;
    const where = isOne ? join(only.localFolder, only.localName) : this.#target;
    const arrived = arrivedText({ meter: this.#meter, report: this.#report }, { where, verb: "fetched" });
    if (this.#context.signal.aborted) return interrupted(arrived, command);
    if (this.#meter.totalFiles > 0) this.#context.note(`${arrived}. ${goOnText(command)}`);
    return error;
  }

  /** The same command; where single files are named, one that does not fetch again what has arrived. */
  #commandToGoOn(plan: readonly PlannedDownload[]): string {
    const flags = repeatedFlags(this.#flags);
    const isWithoutRecord =
      plan.some(({ attr }) => !isFolder(attr)) && wantedSameness(this.#flags) === undefined;
    return commandLine("get", this.#words, isWithoutRecord ? { ...flags, update: true } : flags);
  }
}
