// The verb `put`: uploads files and whole folders.

import { Command } from "commander";
import { systemClock } from "#base/clock.ts";
import type { ClientContext } from "./client-context.ts";
import { ClientError } from "./client-error.ts";
import { withClientFlags } from "./client-flags.ts";
import { type CommandHost, processHost } from "./command-host.ts";
import { repeatedFlags, type TransferFlags, wantedSameness, withTransferFlags } from "./comparison-flags.ts";
import { attrIfThere, isFolder } from "./listing.ts";
import { localTime } from "./local-time.ts";
import { refuseOverlaps } from "./overlaps.ts";
import { ProgressDisplay, ProgressMeter } from "./progress.ts";
import { isLocalFolder, type PlannedSource, planPut } from "./put-plan.ts";
import { formatRemotePath, type TypedPath } from "./remote-path.ts";
import { checkCanAsk, removeSurplus } from "./surplus.ts";
import { TransferJournal, TransferRuns } from "./transfer-journal.ts";
import { TransferReport } from "./transfer-report.ts";
import { arrivedText, commandLine, goOnText, interrupted } from "./transfer-words.ts";
import { TreeUpload, type UploadSource } from "./tree-upload.ts";
import { UploadMemory } from "./upload-memory.ts";

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
    host.run("put", flags, (context) => new Put(context, paths, flags).run()),
  );
}

class Put {
  readonly #context: ClientContext;
  readonly #words: readonly string[];
  readonly #flags: TransferFlags;
  readonly #isQuiet: boolean;
  readonly #meter = new ProgressMeter(systemClock);
  readonly #display: ProgressDisplay;
  readonly #report: TransferReport;
  readonly #journal: TransferJournal;

  constructor(context: ClientContext, words: readonly string[], flags: TransferFlags) {
    this.#context = context;
    this.#words = words;
    this.#flags = flags;
    this.#isQuiet = flags.quiet === true;
    const isSilent = this.#isQuiet || context.isJson;
    this.#display = new ProgressDisplay(context.terminal, this.#meter, "uploaded", isSilent);
    this.#report = new TransferReport(context, this.#display, this.#meter, { isQuiet: this.#isQuiet });
    this.#journal = new TransferJournal(context.config.transfers);
  }

  async run(): Promise<number> {
    try {
      if (this.#flags.delete === true) checkCanAsk(this.#context, this.#flags.yes === true);
      const hasTarget = this.#words.length > 1;
      const target = await this.#context.resolve(hasTarget ? (this.#words.at(-1) ?? ".") : ".");
      const plan = await this.#plan(hasTarget ? this.#words.slice(0, -1) : this.#words, target);
      const command = this.#commandToGoOn(plan);
      try {
        await this.#upload(plan, target);
      } catch (error) {
        this.#display.stop();
        throw this.#tellOfCut(error, { plan, target, command });
      }
      this.#display.stop();
      const code = await this.#report.end("uploaded");
      if (this.#report.hasFailed) this.#context.note(`To send what is missing, type: ${command}`);
      return code;
    } finally {
      this.#display.stop();
    }
  }

  async #plan(paths: readonly string[], target: TypedPath): Promise<PlannedSource[]> {
    const context = this.#context;
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
    const wanted = wantedSameness(this.#flags);
    for (const source of sources) {
      const isAlone = sources.length === 1;
      const deps = { context, cluster, journal: this.#journal, target, there, wanted, isAlone };
      plan.push(await planPut(deps, source));
    }
    if (this.#flags.delete === true) refuseOverlaps(plan.map(({ remotePath }) => remotePath));
    return plan;
  }

  async #upload(plan: readonly PlannedSource[], target: TypedPath): Promise<void> {
    const runs = new TransferRuns<UploadSource>(this.#journal);
    for (const source of plan) {
      if (source.run === undefined) continue;
      await runs.begin(source, source.run);
      this.#tellOfGoingOn(source, target);
    }
    const cluster = await this.#context.cluster();
    const upload = new TreeUpload({
      cluster,
      meter: this.#meter,
      report: this.#report,
      memory: new UploadMemory(this.#context.config.uploads),
      note: (text) => {
        if (!this.#context.isJson) this.#display.note(text);
      },
      root: target.root,
      onTop: (source, folder) => runs.isIn(source, folder.id),
    });
    await upload.run(plan);
    const isWhole = !this.#report.hasFailed;
    if (isWhole) await runs.end();
    if (this.#flags.delete !== true) return;
    this.#display.stop();
    if (isWhole) {
      const deps = { context: this.#context, cluster, report: this.#report, root: target.root };
      await removeSurplus(deps, await upload.surplus(), this.#flags.yes === true);
    } else this.#context.note("Nothing was moved to the trash, since not everything has arrived.");
  }

  #tellOfGoingOn({ path, remotePath, goesOn }: PlannedSource, { root }: TypedPath): void {
    if (goesOn === undefined || this.#isQuiet || this.#context.isJson) return;
    const where = formatRemotePath({ root, path: remotePath });
    this.#display.note(
      `${path}: going on in ${where}, where the upload of ${localTime(goesOn.startedMs)} was cut`,
    );
  }

  /** Says how much has arrived and what to type, whatever has cut it. */
  #tellOfCut(
    error: unknown,
    run: {
      readonly plan: readonly PlannedSource[];
      readonly target: TypedPath;
      readonly command: string;
    },
  ): unknown {
    const { plan, target, command } = run;
    const [only] = plan;
    const path = plan.length === 1 && only !== undefined ? only.remotePath : target.path;
    const where = formatRemotePath({ root: target.root, path });
    const arrived = arrivedText({ meter: this.#meter, report: this.#report }, { where, verb: "sent" });
    if (this.#context.signal.aborted) return interrupted(arrived, command);
    if (this.#meter.totalFiles > 0) this.#context.note(`${arrived}. ${goOnText(command)}`);
    return error;
  }

  /** The same command; where single files are named, one that does not send again what has arrived. */
  #commandToGoOn(plan: readonly PlannedSource[]): string {
    const flags = repeatedFlags(this.#flags);
    const isWithoutRecord =
      plan.some(({ isFolder }) => !isFolder) && wantedSameness(this.#flags) === undefined;
    return commandLine("put", this.#words, isWithoutRecord ? { ...flags, update: true } : flags);
  }
}
