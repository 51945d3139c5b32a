// `command_history.json`: each action is on stable storage before it starts (spec 4.7, 8; D7, A-10, E-06).
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { COMMAND_HISTORY_RECORDS } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { setAside } from "#os/set-aside.ts";
import { readGenerations, readStateFile } from "#os/state-file.ts";
import { type ActionRecord, actionRecord } from "#wire/webapi/action-record.ts";
import { unixSeconds } from "./action-job.ts";
import { ACTION_OUTPUT_KEPT_BYTES } from "./action-output.ts";
import { endOf } from "./output-end.ts";
import { ACTION_RECORDS_WITH_OUTPUT, type KnownActions } from "./output-store.ts";

/** Bytes of each output stream that a record keeps per target; the whole text is in a file of its own. */
export const TARGET_OUTPUT_KEPT_BYTES = 4_096;

/** Newest records of dry runs and rejected actions that are kept besides; a smaller limit holds for them too. */
export const UNRUN_RECORDS_KEPT = 20;

/** Name of the file in the console's data folder (spec 8). */
export const HISTORY_FILE = "command_history.json";
const SET_ASIDE = `${HISTORY_FILE}.corrupt-`;

/** Replaces the file; tests inject failures here. */
type ReplaceFile = (path: string, content: Uint8Array) => Promise<void>;

/** Dependencies of the history. */
export interface ActionHistoryDeps {
  readonly folder: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Finished records that are kept: -history_limit. Unfinished ones and those that ran nothing do not count. */
  readonly limit?: number;
  readonly replaceFile?: ReplaceFile;
}

/** A record with its JSON, so that a change of one record serialises only that one. */
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

/** True for a record without an end. */
export function isUnfinished({ state }: Pick<ActionRecord, "state">): boolean {
  return UNFINISHED.has(state);
}

/** True for the record of an action that touched no node, and never will: it must not displace one that did. */
function isUnrun({ state, request }: Pick<ActionRecord, "state" | "request">): boolean {
  return state === "rejected" || request.dry_run;
}

/** All records, in the order of their creation. */
export class ActionHistory {
  readonly #path: string;
  readonly #limit: number;
  readonly #replaceFile: ReplaceFile;
  readonly #isIncomplete: boolean;
  #entries: ReadonlyMap<string, Entry>;
  #lastWrite: Promise<unknown> = Promise.resolve();
  #failure: string | undefined;

  private constructor(deps: ActionHistoryDeps, entries: ReadonlyMap<string, Entry>, isIncomplete: boolean) {
    this.#isIncomplete = isIncomplete;
    this.#path = join(deps.folder, HISTORY_FILE);
    this.#limit = deps.limit ?? COMMAND_HISTORY_RECORDS;
    this.#replaceFile =
      deps.replaceFile ?? ((path, content) => writeFileAtomic(path, content, { keepPrevious: true }));
    this.#entries = entries;
  }

  /**
   * Reads the history. A damaged file is renamed to `.corrupt-<time>`, which setAsideAs names for an alert,
   * and the previous generation or an empty history takes its place. Unfinished records of an earlier console
   * become orphaned, but for those handed over (T14). Throws BAD_ARGUMENT for a newer schema.
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
    // Also at later starts, as long as nobody has taken the damaged file away.
    const isIncomplete = (await readdir(deps.folder)).some((name) => name.startsWith(SET_ASIDE));
    const byId = new Map(entries.map((entry) => [entry.record.id, entry]));
    const history = new ActionHistory(deps, byId, isIncomplete);
    if (kept.some((record) => isUnfinished(record) && record.state !== "handed_over")) {
      // A full disk keeps no console from its start: the next write has them too.
      await history.#write().catch((error: unknown) => {
        deps.log.error("history_not_written", { error: errorText(error) });
      });
    }
    return { history, setAsideAs };
  }

  /** All records, the newest first. */
  list(): ActionRecord[] {
    return [...this.#entries.values()].map(({ record }) => record).toReversed();
  }

  /** The ids of all actions that may have output, those of finished ones newest first. */
  known(): KnownActions {
    const ids = (isOpen: boolean): string[] =>
      this.list().flatMap((record) =>
        isUnfinished(record) === isOpen && !isUnrun(record) ? [record.id] : [],
      );
    const isIncomplete = this.#isIncomplete;
    return { endedNewestFirst: ids(false), unfinished: ids(true), isIncomplete };
  }

  /** One record. */
  find(id: string): ActionRecord | undefined {
    return this.#entries.get(id)?.record;
  }

  /** Records that an earlier console handed over because the action restarted it (T14); put ends them. */
  handedOver(): ActionRecord[] {
    return this.list().filter(({ state }) => state === "handed_over");
  }

  /**
   * Adds or replaces a record; resolves when it is on stable storage. An action starts only after that.
   * Output beyond the kept ends is cut, and the oldest finished records beyond the limit are dropped. Throws
   * STORAGE_FAILED and leaves the history as it was.
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

  /** Drops the oldest finished records beyond the limits, and the output of all but the newest. */
  #trimmed(entries: ReadonlyMap<string, Entry>): Map<string, Entry> {
    const kept = new Map(entries);
    let [finished, unrun] = [0, 0];
    for (const [id, { record }] of [...entries].toReversed()) {
      if (isUnfinished(record)) continue;
      if (isUnrun(record)) {
        unrun++;
        if (unrun > Math.min(this.#limit, UNRUN_RECORDS_KEPT)) kept.delete(id);
        continue;
      }
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
      // A failed flush is never retried: a restart reads what the disk has.
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

/** The record of an action whose console ended: its outcome is unknown. */
function orphaned(record: ActionRecord, finishedAt: number): ActionRecord {
  if (record.state === "handed_over") return record;
  const targets = record.targets.map((target) =>
    UNFINISHED_TARGETS.has(target.state)
      ? { ...target, state: "unknown" as const, finished_at: finishedAt }
      : target,
  );
  return { ...record, state: "orphaned", finished_at: finishedAt, targets };
}
