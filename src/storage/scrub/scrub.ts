// The scrub on the main thread: the start of a pass, its findings, and its record.
import type { Logger } from "#base/log.ts";
import type { DamagedBytes, ScrubPass, ScrubRecord, ScrubSettings } from "#storage/contract/scrub-types.ts";
import { BackgroundPass, type BeginPass, type PassDeps, readPassRecord } from "./background-pass.ts";
import type { DamageReports } from "./damage-reports.ts";

/** Dependencies of the scrub. */
export interface ScrubDeps extends PassDeps {
  readonly begin: BeginPass<ScrubPass, DamagedBytes>;
  readonly damage: Pick<DamageReports, "report">;
  /** Number of the newest chunk. */
  readonly lastChunk: () => number;
  /** Record that was saved last; undefined when there is none. */
  readonly saved: string | undefined;
}

const NEVER: ScrubRecord = { pass: undefined, lastEndedAtMs: undefined, lastReadBytes: 0, lastFound: 0 };

/** Reads everything again and again, with long pauses. */
export function startScrub(
  deps: ScrubDeps,
  { pauseMs }: Pick<ScrubSettings, "pauseMs">,
): BackgroundPass<ScrubPass, DamagedBytes, ScrubRecord> {
  const { begin, damage, logger } = deps;
  return new BackgroundPass<ScrubPass, DamagedBytes, ScrubRecord>(deps, {
    name: "scrub",
    pauseMs,
    record: readScrubRecord(deps.saved),
    newPass: (nowMs) => newPass(nowMs, deps.lastChunk()),
    begin,
    place: ({ part, position }) => ({ part, position }),
    found(found) {
      const { problem } = found;
      if (found.kind === "chunk") return damage.report({ chunkId: found.chunkId }, problem);
      return damage.report({ fileId: found.fileId, version: found.version }, problem);
    },
    ended: (pass, endedAtMs) => ended(pass, endedAtMs, logger),
  });
}

function ended({ readBytes, found, startedAtMs }: ScrubPass, endedAtMs: number, logger: Logger): ScrubRecord {
  const seconds = Math.round((endedAtMs - startedAtMs) / 1_000);
  logger[found > 0 ? "error" : "info"]("storage.scrub_ended", { bytes: readBytes, found, seconds });
  return { pass: undefined, lastEndedAtMs: endedAtMs, lastReadBytes: readBytes, lastFound: found };
}

function newPass(startedAtMs: number, lastChunk: number): ScrubPass {
  return { startedAtMs, part: "chunks", position: 0, lastChunk, readBytes: 0, found: 0 };
}

/** Parses the saved record of scrubs. */
export function readScrubRecord(text: string | undefined): ScrubRecord {
  return readPassRecord(text, NEVER, ({ pass, lastReadBytes, lastFound }) => {
    const last = [lastReadBytes, lastFound];
    if (pass === undefined) return last;
    const { startedAtMs, position, lastChunk, readBytes, found } = pass;
    return [...last, startedAtMs, position, lastChunk, readBytes, found];
  });
}
