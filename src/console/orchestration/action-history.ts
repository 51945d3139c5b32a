// The history of actions: `command_history.json`, on stable storage before an action starts (spec 4.7, 8; decision D7, failures A-10, E-06).
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { COMMAND_HISTORY_RECORDS } from "#base/limits.ts";
import type { Logger } from "#base/log.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { setAside } from "#os/set-aside.ts";
import { readGenerations, readStateFile } from "#os/state-file.ts";
import { type ActionRecord, actionRecord } from "#wire/webapi/action-record.ts";
import { unixSeconds } from "./action-job.ts";
import { ACTION_OUTPUT_KEPT_BYTES } from "./action-output.ts";
import { endOf } from "./output-end.ts";
import { ACTION_RECORDS_WITH_OUTPUT, type KnownActions } from "./output-store.ts";

/** Bytes of standard output, and of standard error, that a record keeps of each target; the whole text lies beside the history. */
export const TARGET_OUTPUT_KEPT_BYTES = 4_096;

/** Name of the file in the console's data folder (spec 8). */
export const HISTORY_FILE = "command_history.json";

/** How the file is replaced; tests put failures here. */
type ReplaceFile = (path: string, content: Uint8Array) => Promise<void>;

/** What the history is opened with. */
export interface ActionHistoryDeps {
  readonly folder: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Finished records that are kept: -history_limit. Unfinished ones are kept besides. */
  readonly limit?: number;
  readonly replaceFile?: ReplaceFile;
}

/** A record, and its JSON as the file has it: a change of one serialises one. */
interface Entry {
  readonly record: ActionRecord;
  readonly json: Buffer;
}

const FILE_SHAPE = z.object({ schema: z.literal(1), records: z.array(actionRecord) });
const UNFINISHED: ReadonlySet<ActionRecord["state"]> = new Set([
  "queued",
  "locking",
  "running",
  "handed_over",
]);
const UNFINISHED_TARGETS: ReadonlySet<string> = new Set(["pending", "running"]);

/** True for a record of which more is to come. */
export function isUnfinished({ state }: Pick<ActionRecord, "state">): boolean {
  return UNFINISHED.has(state);
}

/** All records, in the order in which they were made. */
export class ActionHistory {
  readonly #path: string;
  readonly #limit: number;
  readonly #replaceFile: ReplaceFile;
  #entries: ReadonlyMap<string, Entry>;
  #lastWrite: Promise<unknown> = Promise.resolve();
  #failure: string | undefined;

  private constructor(deps: ActionHistoryDeps, entries: ReadonlyMap<string, Entry>) {
    this.#path = join(deps.folder, HISTORY_FILE);
    this.#limit = deps.limit ?? COMMAND_HISTORY_RECORDS;
    this.#replaceFile =
      deps.replaceFile ?? ((path, content) => writeFileAtomic(path, content, { keepPrevious: true }));
    this.#entries = entries;
  }

  /**
   * Reads the history. A damaged file is set aside as `.corrupt-<time>` and the generation before takes its place, else an empty one;
   * setAsideAs then names it, for an alert. What an earlier console left unfinished is orphaned, but for what it has handed over (T14).
   * Throws BAD_ARGUMENT for a newer schema.
   */
  static async open(
    deps: ActionHistoryDeps,
  ): Promise<{ readonly history: ActionHistory; readonly setAsideAs: string | undefined }> {
    const path = join(deps.folder, HISTORY_FILE);
    const { content, current } = await readGenerations(path, (one) => readStateFile(one, FILE_SHAPE));
    const setAsideAs = current === "broken" ? await setAside(path, deps) : undefined;
    const kept = content?.records ?? [];
    const finishedAt = unixSeconds(deps.clock);
    const entries = kept.map((record) =>
      entryOf(isUnfinished(record) ? orphaned(record, finishedAt) : record),
    );
    const history = new ActionHistory(deps, new Map(entries.map((entry) => [entry.record.id, entry])));
    if (kept.some((record) => isUnfinished(record) && record.state !== "handed_over")) await history.#write();
    return { history, setAsideAs };
  }

  /** All records, the newest first. */
  list(): ActionRecord[] {
    return [...this.#entries.values()].map(({ record }) => record).toReversed();
  }

  /** Ids of all of them, those that have ended the newest first. */
  known(): KnownActions {
    const ids = (isOpen: boolean): string[] =>
      this.list().flatMap((record) => (isUnfinished(record) === isOpen ? [record.id] : []));
    return { endedNewestFirst: ids(false), unfinished: ids(true) };
  }

  /** One record. */
  find(id: string): ActionRecord | undefined {
    return this.#entries.get(id)?.record;
  }

  /** Records that an earlier console handed over when its own restart was the action (T14): whoever knows ends them by put. */
  handedOver(): ActionRecord[] {
    return this.list().filter(({ state }) => state === "handed_over");
  }

  /**
   * Adds a record, or takes a newer state of one; resolves when that is on stable storage. An action starts only after this has resolved
   * for it. Output beyond the ends that are kept is cut; of finished records beyond the limit the oldest go. Throws STORAGE_FAILED: then
   * the history is as it was.
   */
  put(record: ActionRecord): Promise<void> {
    const mine = this.#lastWrite.then(async () => {
      const before = this.#entries;
      this.#entries = this.#trimmed(new Map(before).set(record.id, entryOf(record)));
      try {
        await this.#write();
      } catch (error) {
        this.#entries = before;
        throw error;
      }
    });
    this.#lastWrite = mine.catch(() => undefined);
    return mine;
  }

  /** Without the oldest finished records beyond the limit, and without the output of those that are not among the newest. */
  #trimmed(entries: ReadonlyMap<string, Entry>): Map<string, Entry> {
    const kept = new Map(entries);
    let finished = 0;
    for (const [id, { record }] of [...entries].toReversed()) {
      if (isUnfinished(record)) continue;
      finished++;
      if (finished > this.#limit) kept.delete(id);
      else if (finished > ACTION_RECORDS_WITH_OUTPUT && hasOutput(record)) {
        kept.set(id, entryOf(withoutOutput(record)));
      }
    }
    return kept;
  }

  async #write(): Promise<void> {
    if (this.#failure !== undefined) throw new GroveError("STORAGE_FAILED", this.#failure);
    const pieces = [...this.#entries.values()].flatMap(({ json }, at) => (at === 0 ? [json] : [COMMA, json]));
    try {
      await this.#replaceFile(this.#path, Buffer.concat([HEAD, ...pieces, TAIL]));
    } catch (cause) {
      // A flush that has failed is never tried again: a restart reads what is there.
      if (isGroveError(cause, "STORAGE_FAILED")) {
        this.#failure = "the history of actions cannot be written until a restart";
      }
      throw new GroveError("STORAGE_FAILED", "the history of actions could not be written", { cause });
    }
  }
}

const HEAD = Buffer.from('{"schema":1,"records":[\n');
const COMMA = Buffer.from(",\n");
const TAIL = Buffer.from("\n]}\n");

function entryOf(record: ActionRecord): Entry {
  const cut = {
    ...record,
    stdout: endOf(record.stdout, ACTION_OUTPUT_KEPT_BYTES),
    stderr: endOf(record.stderr, ACTION_OUTPUT_KEPT_BYTES),
    targets: record.targets.map((target) => {
      const stdout = endOf(target.stdout, TARGET_OUTPUT_KEPT_BYTES);
      const stderr = endOf(target.stderr, TARGET_OUTPUT_KEPT_BYTES);
      const isCut = stdout !== target.stdout || stderr !== target.stderr;
      return { ...target, stdout, stderr, truncated: target.truncated || isCut };
    }),
  };
  return { record: cut, json: Buffer.from(JSON.stringify(cut)) };
}

function hasOutput({ stdout, stderr, targets }: ActionRecord): boolean {
  return (
    stdout !== "" || stderr !== "" || targets.some((target) => target.stdout !== "" || target.stderr !== "")
  );
}

function withoutOutput(record: ActionRecord): ActionRecord {
  const targets = record.targets.map((target) => {
    const isCut = target.stdout !== "" || target.stderr !== "";
    return { ...target, stdout: "", stderr: "", truncated: target.truncated || isCut };
  });
  return { ...record, stdout: "", stderr: "", targets };
}

/** Nobody knows what became of it: the console that ran it is gone. */
function orphaned(record: ActionRecord, finishedAt: number): ActionRecord {
  if (record.state === "handed_over") return record;
  const targets = record.targets.map((target) =>
    UNFINISHED_TARGETS.has(target.state)
      ? { ...target, state: "unknown" as const, finished_at: finishedAt }
      : target,
  );
  return { ...record, state: "orphaned", finished_at: finishedAt, targets };
}
