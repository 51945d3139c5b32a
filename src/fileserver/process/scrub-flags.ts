// The scrub's flags on the command line of a storage node.
import { type Command, InvalidArgumentError } from "commander";
import { parseBytes } from "#base/bytes.ts";
import { parseDuration } from "#base/duration.ts";
import type { ScrubSettings } from "#storage/contract/scrub-types.ts";

/** Default bytes per second of the scrub: a tenth of an SD card's rate, and 10 TiB in 30 days. */
const SCRUB_BYTES_PER_SECOND = 4_194_304;
/** From the end of one pass of the scrub to the start of the next (failure A-08). */
const SCRUB_PAUSE_MS: number = 30 * 86_400_000;

/** The flags as typed. */
export interface ScrubFlags {
  readonly scrubRate?: number;
  readonly scrubPause?: number;
}

/** Adds the flags. */
export function withScrubFlags(command: Command): Command {
  return command
    .option(
      "--scrub-rate <bytes>",
      "how much per second is read to find rotten bytes, such as 20MiB; 0 for not at all (default: 4MiB)",
      parseRate,
    )
    .option(
      "--scrub-pause <span>",
      "how long after everything was read it is read again (default: 30d)",
      parsePause,
    );
}

/** The scrub's settings; undefined when it was switched off. */
export function scrubSettings({ scrubRate, scrubPause }: ScrubFlags): ScrubSettings | undefined {
  if (scrubRate === 0) return undefined;
  return { bytesPerSecond: scrubRate ?? SCRUB_BYTES_PER_SECOND, pauseMs: scrubPause ?? SCRUB_PAUSE_MS };
}

function parseRate(text: string): number {
  const bytes = parseBytes(text);
  if (bytes === undefined || bytes > Number.MAX_SAFE_INTEGER)
    throw new InvalidArgumentError('write bytes, or "20MiB".');
  return Number(bytes);
}

function parsePause(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined) throw new InvalidArgumentError('write a span such as "30d".');
  return ms;
}
