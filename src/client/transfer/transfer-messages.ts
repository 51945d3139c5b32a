// The message of a cut transfer: how much has arrived, and the command that resumes it.
import { formatBytes } from "#base/bytes.ts";
import { shellWord } from "#base/shell-word.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { filesText, type ProgressMeter } from "#client/terminal/progress.ts";
import type { TransferReport } from "./transfer-report.ts";

/** Options of a transfer, as typed. */
export type TypedFlags = Readonly<Record<string, string | boolean | undefined>>;

/** A command line with these options and words, quoted for a shell. */
export function commandLine(verb: string, words: readonly string[], flags: TypedFlags): string {
  const options = Object.entries(flags).flatMap(([name, value]) => {
    if (value === undefined || value === false) return [];
    const option = name.length === 1 ? `-${name}` : `--${name}`;
    return value === true ? [option] : [option, shellWord(value)];
  });
  const dashes = words.some((word) => word.startsWith("-")) ? ["--"] : [];
  return ["grove", verb, ...options, ...dashes, ...words.map(shellWord)].join(" ");
}

/**
 * The arrived part of a cut transfer: "1,234 of at least 20,000 files are in /photos (1.2 GiB of them sent
 * now)".
 */
export function arrivedText(
  { meter, report }: { readonly meter: ProgressMeter; readonly report: TransferReport },
  place: { readonly where: string; readonly verb: "sent" | "fetched" },
): string {
  const arrived = meter.doneFiles + report.unchanged;
  const all = meter.totalFiles + report.unchanged;
  const counted = `${arrived.toLocaleString("en-US")} of ${meter.isTotalKnown ? "" : "at least "}${filesText(all)}`;
  const now = `${formatBytes(meter.doneBytes)} of them ${place.verb} now`;
  return `${counted} ${arrived === 1 ? "is" : "are"} in ${place.where} (${now})`;
}

/** The hint with the command that resumes a cut transfer. */
export function resumeText(command: string): string {
  return `To go on from there, type: ${command}`;
}

/** The failure of a transfer that Ctrl-C has ended. */
export function interrupted(arrived: string, command: string): ClientError {
  return new ClientError("CANCELLED", `interrupted: ${arrived}`, {
    todo: resumeText(command),
    metadata: { command },
  });
}
