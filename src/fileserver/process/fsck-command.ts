// `grove fsck`: recounts and verifies the data folder of a stopped storage node.
import { Command } from "commander";
import { formatBytes } from "#base/bytes.ts";
import { systemClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { stringify64 } from "#base/json64.ts";
import { systemFraction } from "#base/random.ts";
import { quotaFileProblem } from "#quota/quota-store.ts";
import type { StorageReport } from "#storage/check/check-report.ts";
import { checkStorage } from "#storage/check/check-storage.ts";
import { type EngineFlags, engineSettings } from "#storage/engine/engine-settings.ts";

interface Flags extends EngineFlags {
  readonly data?: string;
  readonly list: boolean;
  readonly restored: boolean;
  readonly repair: boolean;
  readonly deep: boolean;
  readonly json: boolean;
}

const HELP = `
What is checked: the database, sizes of every directory up to its root, the quota counters, the chunk list against the
chunk files, and quota_config.json. -deep also reads every stored byte and compares its checksum.

What -repair does: it corrects counters and sizes, moves chunk files that belong to nothing to lost+found (lost+found-grove
where that is the disk's own), and marks files whose bytes are missing or wrong as damaged. It never deletes. With -deep it
also takes that mark away from files whose bytes are right again, so that a chunk file put back from a backup counts.

-engine_file and -store in place of -data check the shared engine while FileServers use it: its rows by the same rules, and
with -list every object of the bucket. Nothing is repaired there. -restored is for a database that was restored to an earlier
moment, or stands beside a bucket that has lost its content: it ends all leases, and leaves objects of after that moment to
the removal passes. Stop the FileServers first.

Exit code: 0 only if nothing differs; 1 if something does, even when it was repaired: run it again to see 0. Nothing was
checked: 3 when the folder is missing or no data folder, 8 when a running node holds it.

Examples:
  grove fsck -data /srv/grove
  grove fsck -data /srv/grove -deep -repair
  grove fsck -engine_file FILE -store 's3://…' -list`;

/** The parser of `grove fsck`. */
export function command(): Command {
  return new Command("fsck")
    .summary("Recount and verify the data of a stopped storage node")
    .description("Recount and verify the data folder of a storage node that is not running.")
    .option("--data <folder>", "the node's data folder")
    .option("--engine <url>", "the shared engine's database instead")
    .option("--engine-file <file>", "file with that URL")
    .option("--store <url>", "the engine's bucket")
    .option("--list", "compare all of the bucket's objects with the engine's rows", false)
    .option("--restored", "with -list: the engine's database was restored, so its leases begin anew", false)
    .option("--repair", "put right what can be put right without deleting anything", false)
    .option("--deep", "read every stored byte and check it", false)
    .option("--json", "print the report as JSON", false)
    .addHelpText("after", HELP)
    .action(async (flags: Flags) => {
      const report = await checked(flags);
      process.stdout.write(flags.json ? `${stringify64(report, 2)}\n` : inWords(report, flags));
      if (report.differenceCount > 0) process.exitCode = 1;
    });
}

async function checked(flags: Flags): Promise<StorageReport> {
  const { data, repair, deep, list, restored } = flags;
  const engine = await engineSettings(flags, process.env);
  if ((engine === undefined) === (data === undefined)) {
    throw new GroveError("BAD_ARGUMENT", "give -data, or the shared engine by -engine_file and -store");
  }
  if (engine === undefined) {
    if (list || restored) {
      throw new GroveError("BAD_ARGUMENT", "-list and -restored are for the shared engine");
    }
    return withQuotaFile(checkStorage(data ?? "", flags), await quotaFileProblem(data ?? ""));
  }
  if (repair || deep) throw new GroveError("BAD_ARGUMENT", "-repair and -deep are for a data folder");
  if (restored && !list) throw new GroveError("BAD_ARGUMENT", "-restored goes with -list");
  // Most nodes have files on their own disks, and no use for the code.
  const { checkEngine } = await import("#storage/engine/engine-check.ts");
  const { probedAddresses } = await import("#storage/engine/engine-probe.ts");
  return checkEngine({
    database: probedAddresses(engine, process.env),
    bucket: list ? engine.store : undefined,
    isRestored: restored,
    clock: systemClock,
    fraction: systemFraction,
  });
}

function withQuotaFile(report: StorageReport, problem: string | undefined): StorageReport {
  if (problem === undefined) return report;
  return {
    ...report,
    differences: [...report.differences, problem],
    differenceCount: report.differenceCount + 1,
  };
}

function inWords(report: StorageReport, flags: Flags): string {
  const { rootCount, inodeCount, chunkCount, liveBytes, trashBytes, verifiedBytes } = report;
  const { differences, differenceCount, repairedCount } = report;
  const lines = [
    `${flags.data ?? "the shared engine"}: ${rootCount} roots, ${inodeCount} inodes, ${chunkCount} chunks, ${formatBytes(liveBytes)} in files, ${formatBytes(trashBytes)} in the trash`,
  ];
  if (flags.deep) lines.push(`${formatBytes(verifiedBytes)} read and compared with their checksums`);
  lines.push(...differences.map((text) => `  differs: ${text}`));
  if (differenceCount > differences.length)
    lines.push(`  ... and ${differenceCount - differences.length} more`);
  lines.push(...report.notes.map((text) => `  note: ${text}`));
  if (differenceCount === 0) lines.push("0 differences: everything is as it should be");
  else {
    const left = differenceCount - repairedCount;
    lines.push(
      `${differenceCount} differences, ${repairedCount} repaired` +
        (left > 0 && flags.data !== undefined && !flags.repair
          ? "; -repair puts right what can be put right"
          : ""),
    );
  }
  return `${lines.join("\n")}\n`;
}
