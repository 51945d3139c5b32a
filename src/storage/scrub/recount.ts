// The recount on the main thread: the start of a pass, the log of its findings, and its record (D16, A-17).
import type { Logger } from "#base/log.ts";
import type {
  Drift,
  RecountFinding,
  RecountPass,
  RecountRecord,
  RecountSettings,
  RecountState,
} from "#storage/contract/recount-types.ts";
import { RECOUNT_KEY } from "#storage/contract/recount-types.ts";
import { BackgroundPass, type BeginPass, type PassDeps, readPassRecord } from "./background-pass.ts";

/** Wrong counters that one pass of the recount names in the log; all are counted. */
export const RECOUNT_FOUND_LOGGED = 100;

/** Dependencies of the recount. */
export interface RecountDeps extends PassDeps {
  readonly begin: BeginPass<RecountPass, readonly RecountFinding[]>;
  /** Record that was saved last; undefined when there is none. */
  readonly saved: string | undefined;
}

const NO_DRIFT: Drift = {
  bytes: 0,
  counters: 0,
  directoryBytes: 0,
  liveBytes: 0,
  trashBytes: 0,
  stagingBytes: 0,
};

const NEVER: RecountRecord = {
  pass: undefined,
  lastEndedAtMs: undefined,
  lastRoots: 0,
  lastRows: 0,
  lastDrift: NO_DRIFT,
};

/** Counts everything again and again, with pauses. */
export function startRecount(
  deps: RecountDeps,
  { pauseMs }: Pick<RecountSettings, "pauseMs">,
): BackgroundPass<RecountPass, readonly RecountFinding[], RecountRecord> {
  const { begin, logger } = deps;
  let logged = 0;
  return new BackgroundPass<RecountPass, readonly RecountFinding[], RecountRecord>(deps, {
    name: RECOUNT_KEY,
    pauseMs,
    record: readRecountRecord(deps.saved),
    newPass(startedAtMs) {
      logged = 0;
      return newRecountPass(startedAtMs);
    },
    begin,
    place: ({ root, position }) => ({ root, position }),
    found(findings) {
      for (const { owner, ...finding } of findings) {
        if (logged++ < RECOUNT_FOUND_LOGGED) logger.error("quota_drift", { user: owner, ...finding });
      }
      return undefined;
    },
    ended: (pass, endedAtMs) => ended(pass, endedAtMs, logger),
  });
}

function ended(
  { startedAtMs, roots, rows, drift }: RecountPass,
  endedAtMs: number,
  logger: Logger,
): RecountRecord {
  const seconds = Math.round((endedAtMs - startedAtMs) / 1_000);
  const { bytes, counters } = drift;
  logger[counters > 0 ? "error" : "info"]("storage.recount_ended", { roots, rows, bytes, counters, seconds });
  return {
    pass: undefined,
    lastEndedAtMs: endedAtMs,
    lastRoots: roots,
    lastRows: rows,
    lastDrift: drift,
  };
}

/** A new pass. */
export function newRecountPass(startedAtMs: number): RecountPass {
  return {
    startedAtMs,
    root: 0,
    lastId: 0,
    position: 0,
    surplusBytes: 0,
    deficitBytes: 0,
    inodesOff: 0,
    trashOff: 0,
    roots: 0,
    rows: 0,
    drift: NO_DRIFT,
  };
}

/** Parses the saved record of recounts. */
export function readRecountRecord(text: string | undefined): RecountRecord {
  return readPassRecord(text, NEVER, ({ pass, lastRoots, lastRows, lastDrift }) => {
    const last = [lastRoots, lastRows, ...numbersOf(lastDrift, NO_DRIFT)];
    if (pass === undefined) return last;
    const { drift, ...place } = pass;
    const { drift: _, ...none } = newRecountPass(0);
    return [...last, ...numbersOf(drift, NO_DRIFT), ...numbersOf(place, none)];
  });
}

/** The values of all required fields. */
function numbersOf<T extends object>(values: T, names: T): unknown[] {
  return Object.keys(names).map((name) => values[name as keyof T]);
}

/**
 * The state of a record, for the rest of the process. Findings of the current pass count at once; those of
 * the last one until the next ends.
 */
export function recountState(record: RecountRecord & { readonly isRunning: boolean }): RecountState {
  const { pass, lastDrift, lastEndedAtMs } = record;
  const now = pass?.drift ?? NO_DRIFT;
  if (lastEndedAtMs === undefined) return { ...record, drift: now.counters === 0 ? undefined : known(pass) };
  const running = known(pass);
  const drift = Object.fromEntries(
    (Object.keys(NO_DRIFT) as (keyof Drift)[]).map((name) => [
      name,
      Math.max(lastDrift[name], running[name]),
    ]),
  ) as unknown as Drift;
  return { ...record, drift };
}

/** Findings of a pass so far, the current root's included. */
function known(pass: RecountPass | undefined): Drift {
  if (pass === undefined) return NO_DRIFT;
  const { drift, surplusBytes, deficitBytes } = pass;
  return { ...drift, bytes: drift.bytes + Math.max(surplusBytes, deficitBytes) };
}
