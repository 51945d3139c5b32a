// `grove backup`: copies of a storage node's data, made while it runs, checked, restored and pruned.
import { Command, InvalidArgumentError } from "commander";
import { formatBytes } from "#base/bytes.ts";
import { systemClock } from "#base/clock.ts";
import { stringify64 } from "#base/json64.ts";
import { systemRandom } from "#base/random.ts";
import { shellWord } from "#base/shell-word.ts";
import { commandsToServe, type PastRole, pastInWords, readPastRole } from "#security/authority/node-role.ts";
import { type BackupProgress, type BackupReport, createBackup } from "#storage/backup/backup-create.ts";
import { type RestoreReport, restoreBackup } from "#storage/backup/backup-restore.ts";
import {
  listBackups,
  pruneBackups,
  type VerifyReport,
  verifyBackups,
} from "#storage/backup/backup-verify.ts";
import { noteRestore } from "./restore-note.ts";

interface Flags {
  readonly json?: boolean;
  readonly quiet?: boolean;
}

const HELP = `
A backup holds the files of all users with their trash and shares, the quotas, who is known by which identity, and which node of
which cluster it was, with its certificate; with -certificates also the certificate's private key, so that what is restored needs
no new one. Each is complete in itself; chunks that several share lie there once.

On the filesystem of the node's data a backup links the chunk files, which costs no space and does not help against that
disk's death: copy the folder to another machine (rsync -a), or let -to be another disk. docs/operating.md begins with it.

Examples:
  grove backup create -data /srv/grove -to /mnt/backup/n1      the node may run
  grove backup verify /mnt/backup/n1                           every byte of every backup
  grove backup restore /mnt/backup/n1 -to /srv/grove-new
  grove backup prune /mnt/backup/n1 -keep 14

Exit code: 0 when all is well; 1 when something is damaged, which is named; 3 when a folder is missing or not what it
should be; 8 when another backup or prune works on the folder.`;

const PROGRESS_INTERVAL_MS = 500;

/** The parser of `grove backup`. */
export function command(): Command {
  const parser = new Command("backup")
    .summary("Back up the data of a storage node, and restore it")
    .description(
      "Back up the data folder of a storage node, which may run, and check, restore and prune backups.",
    )
    .addHelpText("after", HELP);
  parser.addCommand(create());
  parser.addCommand(list());
  parser.addCommand(verify());
  parser.addCommand(restore());
  parser.addCommand(prune());
  return parser;
}

function create(): Command {
  return withOutput(
    new Command("create")
      .description("Back up a node's data: only what the backups there do not have yet is copied.")
      .requiredOption("--data <folder>", "the node's data folder")
      .requiredOption("--to <folder>", "the folder of backups; made when missing")
      .option("--certificates", "the private key of the node's certificate too", false)
      .option("--full", "read what is there from earlier backups too, and replace what is damaged", false)
      .option("--copy", "copy chunk files even where links would do", false),
  ).action(
    async (
      flags: Flags & { data: string; to: string; certificates: boolean; full: boolean; copy: boolean },
    ) => {
      const progress = new ProgressLine("backup", flags);
      const report = await createBackup({
        directory: flags.data,
        folder: flags.to,
        keys: flags.certificates,
        full: flags.full,
        copies: flags.copy,
        nowMs: () => systemClock.wallMs(),
        progress: (done) => progress.show(done),
      });
      progress.end();
      print(flags, report, createdText(report));
      if (report.problems.length > 0) process.exitCode = 1;
    },
  );
}

function list(): Command {
  return withOutput(
    new Command("list")
      .description("List the backups in a folder.")
      .argument("<folder>", "the folder of backups"),
  ).action((folder: string, flags: Flags) => {
    const backups = listBackups(folder);
    const lines = backups.map(({ id, manifest, problem }) => {
      if (manifest === undefined) return `${id}  ${problem ?? ""}`;
      const damaged = manifest.damaged_chunks.length;
      return (
        `${id}  ${manifest.root_count} roots, ${manifest.inode_count} inodes, ${formatBytes(manifest.chunk_bytes)} in ${manifest.chunk_count} chunks` +
        (damaged > 0 ? `, ${damaged} damaged when it was made` : "")
      );
    });
    print(flags, { backups }, lines.length > 0 ? lines : ["no finished backup"]);
  });
}

function verify(): Command {
  return withOutput(
    new Command("verify")
      .description("Read every byte of the backups in a folder and compare it with its checksum.")
      .argument("<folder>", "the folder of backups")
      .option("--backup <id>", "only this one (default: all)"),
  ).action((folder: string, flags: Flags & { backup?: string }) => {
    const progress = new ProgressLine("verify", flags);
    const report = verifyBackups(folder, { id: flags.backup, progress: (done) => progress.show(done) });
    progress.end();
    print(flags, report, verifiedText(report));
    if (report.problemCount > 0) process.exitCode = 1;
  });
}

function restore(): Command {
  return withOutput(
    new Command("restore")
      .description("Make a data folder out of a backup.")
      .argument("<folder>", "the folder of backups")
      .requiredOption("--to <folder>", "the new data folder: missing or empty")
      .option("--backup <id>", "which backup (default: the newest)"),
  ).action(async (folder: string, flags: Flags & { to: string; backup?: string }) => {
    const progress = new ProgressLine("restore", flags);
    const report = await restoreBackup({
      folder,
      id: flags.backup,
      target: flags.to,
      clock: systemClock,
      random: systemRandom,
      progress: (done) => progress.show(done),
      onFilled: (from) => noteRestore(flags.to, from, systemClock),
    });
    progress.end();
    const past = await readPastRole(flags.to);
    print(flags, { ...report, next: commandsToServe(past, flags.to) }, restoredText(report, past, flags.to));
    if (report.problems.length > 0) process.exitCode = 1;
  });
}

function prune(): Command {
  return withOutput(
    new Command("prune")
      .description("Remove all backups but the newest, with the chunks that only they needed.")
      .argument("<folder>", "the folder of backups")
      .requiredOption("--keep <n>", "how many backups stay, at least 1", parseKeep),
  ).action((folder: string, flags: Flags & { keep: number }) => {
    const report = pruneBackups(folder, flags.keep);
    const { removed, kept, removedChunks } = report;
    print(flags, report, [
      `${removed.length} backups and ${removedChunks} chunks removed, ${kept.length} backups kept`,
    ]);
  });
}

function withOutput(parser: Command): Command {
  return parser.option("--json", "print the report as JSON").option("-q, --quiet", "no progress");
}

function print(flags: Flags, report: unknown, lines: readonly string[]): void {
  process.stdout.write(flags.json === true ? `${stringify64(report, 2)}\n` : `${lines.join("\n")}\n`);
}

function createdText({
  id,
  manifest,
  newChunks,
  newBytes,
  linkedChunks,
  savedByOlder,
  problems,
}: BackupReport): string[] {
  const how = linkedChunks > 0 ? `, ${linkedChunks} of them as links on the same disk` : "";
  return [
    `backup ${id}: ${manifest.root_count} roots, ${manifest.inode_count} inodes, ${formatBytes(manifest.chunk_bytes)} in ${manifest.chunk_count} chunks`,
    `${newChunks} chunks were new (${formatBytes(newBytes)}${how})`,
    ...(savedByOlder > 0
      ? [`${savedByOlder} chunks that the node has lost are here from older backups`]
      : []),
    ...problems.map((problem) => `  damaged: ${problem}`),
    ...(problems.length > 0
      ? [
          `${problems.length} chunks are damaged on the node and could not be backed up; their files are marked as damaged after a restore`,
        ]
      : []),
  ];
}

function verifiedText({
  backups,
  verifiedBytes,
  problems,
  problemCount,
  unfinished,
}: VerifyReport): string[] {
  const lines = backups.map(({ id, isGood, damagedChunks }) => {
    const damaged =
      damagedChunks > 0 ? `, without ${damagedChunks} chunks that were damaged when it was made` : "";
    return `${id}: ${isGood ? "good" : "NOT GOOD"}${damaged}`;
  });
  lines.push(...problems.map((problem) => `  ${problem}`));
  if (problemCount > problems.length) lines.push(`  ... and ${problemCount - problems.length} more`);
  if (problemCount > 0)
    lines.push(
      "what the node still has comes back with: grove backup create -full; what it has not is lost here",
    );
  if (unfinished > 0) lines.push(`${unfinished} interrupted backups do not count; the next one removes them`);
  lines.push(`${formatBytes(verifiedBytes)} read and compared, ${problemCount} problems`);
  return lines;
}

function restoredText(
  { id, inodes, chunks, bytes, problems, damagedFiles }: RestoreReport,
  past: PastRole,
  target: string,
): string[] {
  const commands = commandsToServe(past, target);
  const isJoining = commands.length > 1;
  return [
    `${target}: restored from backup ${id}: ${inodes} inodes, ${chunks} chunks, ${formatBytes(bytes)} copied and checked`,
    ...problems.map((problem) => `  damaged: ${problem}`),
    ...(damagedFiles > 0 ? [`${damagedFiles} files are marked as damaged`] : []),
    `It was ${pastInWords(past)}. Only when that one is gone for good:`,
    `  grove fsck -data ${shellWord(target)} -deep`,
    ...commands.map(
      (command, at) => `  ${command}${isJoining && at === 0 ? "    (on the MetaServer's host)" : ""}`,
    ),
    ...(isJoining ? ["Its private key is not in the backup: 'join' makes a new one."] : []),
    "What else it was started with (variables, further flags) is not in a backup.",
  ];
}

/** A line on the terminal with the progress. */
class ProgressLine {
  readonly #what: string;
  readonly #isShown: boolean;
  #shownAtMs = Number.NEGATIVE_INFINITY;
  #hasText = false;

  constructor(what: string, flags: Flags) {
    this.#what = what;
    this.#isShown = process.stderr.isTTY && flags.quiet !== true;
  }

  show({ doneBytes, totalBytes }: BackupProgress): void {
    const nowMs = systemClock.steadyMs();
    if (!this.#isShown || nowMs - this.#shownAtMs < PROGRESS_INTERVAL_MS) return;
    this.#shownAtMs = nowMs;
    this.#hasText = true;
    const percent = totalBytes === 0 ? 100 : Math.floor((doneBytes / totalBytes) * 100);
    process.stderr.write(
      `\r${this.#what}: ${formatBytes(doneBytes)} of ${formatBytes(totalBytes)} (${percent} %)\u001B[K`,
    );
  }

  end(): void {
    if (this.#hasText) process.stderr.write("\r\u001B[K");
  }
}

function parseKeep(text: string): number {
  const count = Number(text);
  if (!Number.isSafeInteger(count) || count < 1)
    throw new InvalidArgumentError("write a whole number from 1 up.");
  return count;
}
