// The history of rollouts: one file each, on stable storage before its first step (D7, A-10, E-06).
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import { removeLeftovers, writeFileAtomic } from "#os/atomic-file.ts";
import { setAside } from "#os/set-aside.ts";
import { readStateFile } from "#os/state-file.ts";
import { type RolloutRecord, rolloutRecord } from "#wire/webapi/rollout.ts";
import { unixSeconds } from "./action-job.ts";
import { goesBack } from "./rollout-plan.ts";

/** Finished rollouts that are kept, besides unfinished ones; a few kilobytes for each node. */
export const ROLLOUTS_KEPT = 50;

/** Name of the folder in the console's data folder. */
const FOLDER = "rollouts";
const FILE = /^([0-9A-HJKMNP-TV-Z]{26})\.json$/;
const FILE_SHAPE = z.object({ schema: z.literal(1), rollout: rolloutRecord });

/** Dependencies of the history. */
export interface RolloutHistoryDeps {
  readonly folder: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Replaces a file; tests inject failures here. */
  readonly replaceFile?: (path: string, content: string) => Promise<void>;
}

/** All rollouts. */
export class RolloutHistory {
  readonly #folder: string;
  readonly #replaceFile: (path: string, content: string) => Promise<void>;
  readonly #records: Map<string, RolloutRecord>;
  readonly #lastWrites = new Map<string, Promise<unknown>>();
  #failure: string | undefined;

  private constructor(folder: string, deps: RolloutHistoryDeps, records: readonly RolloutRecord[]) {
    this.#folder = folder;
    this.#replaceFile = deps.replaceFile ?? ((path, content) => writeFileAtomic(path, content));
    this.#records = new Map(records.map((record) => [record.id, record]));
  }

  /**
   * Reads the folder. Damaged files are renamed to `.corrupt-<time>` and named in `setAside`. Rollouts that
   * an earlier console left running become interrupted; their nodes keep their last step. Throws BAD_ARGUMENT
   * for a newer schema.
   */
  static async open(
    deps: RolloutHistoryDeps,
  ): Promise<{ readonly history: RolloutHistory; readonly setAside: readonly string[] }> {
    const folder = join(deps.folder, FOLDER);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const records: RolloutRecord[] = [];
    const damaged: string[] = [];
    for (const name of (await readdir(folder)).toSorted()) {
      const id = FILE.exec(name)?.[1];
      if (id === undefined) continue;
      const path = join(folder, name);
      await removeLeftovers(path);
      const found = await readStateFile(path, FILE_SHAPE);
      if (found === "missing") continue;
      if (found === "broken" || found.rollout.id !== id) {
        damaged.push(await setAside(path, deps));
      } else records.push(found.rollout);
    }
    const history = new RolloutHistory(folder, deps, records);
    for (const record of records) {
      if (record.state !== "running") continue;
      // A full disk keeps no console from its start: the next one finds it running again.
      await history.put(interrupted(record, deps.clock)).catch((error: unknown) => {
        deps.log.error("rollout_not_recorded", { id: record.id, error: errorText(error) });
      });
    }
    return { history, setAside: damaged };
  }

  /** All rollouts, the newest first. */
  list(): RolloutRecord[] {
    return [...this.#records.values()].toReversed();
  }

  /** One rollout. */
  find(id: string): RolloutRecord | undefined {
    return this.#records.get(id);
  }

  /**
   * Replaces a rollout's record; resolves when it is on stable storage. On STORAGE_FAILED it is only in
   * memory.
   */
  put(record: RolloutRecord): Promise<void> {
    this.#records.set(record.id, record);
    const before = this.#lastWrites.get(record.id) ?? Promise.resolve();
    const mine = before.catch(() => undefined).then(() => this.#write(record));
    this.#lastWrites.set(record.id, mine);
    const forget = (): void => {
      if (this.#lastWrites.get(record.id) === mine) this.#lastWrites.delete(record.id);
    };
    mine.then(forget, forget);
    return mine;
  }

  /** Removes a rollout that never began. */
  drop(id: string): void {
    this.#records.delete(id);
  }

  /** Removes the oldest finished rollouts beyond the limit. Never rejects: the next call finds the rest. */
  async prune(): Promise<void> {
    const over = this.list().filter(({ state }) => state !== "running");
    for (const { id } of over.slice(ROLLOUTS_KEPT)) {
      this.#records.delete(id);
      await rm(this.#path(id), { force: true }).catch(() => undefined);
    }
  }

  async #write(record: RolloutRecord): Promise<void> {
    if (this.#failure !== undefined) throw new GroveError("STORAGE_FAILED", this.#failure);
    try {
      await this.#replaceFile(this.#path(record.id), `${JSON.stringify({ schema: 1, rollout: record })}\n`);
    } catch (cause) {
      // A failed flush is never retried: a restart reads what the disk has.
      if (isGroveError(cause, "STORAGE_FAILED")) {
        this.#failure = "rollouts cannot be written down until a restart";
      }
      throw new GroveError("STORAGE_FAILED", "the rollout could not be written down", { cause });
    }
  }

  #path(id: string): string {
    return join(this.#folder, `${id}.json`);
  }
}

/** Running nodes become unknown: their actions were ended, and the actions' records have the details. */
function interrupted(record: RolloutRecord, clock: Pick<Clock, "wallMs">): RolloutRecord {
  const finishedAt = unixSeconds(clock);
  const nodes = record.nodes.map((node) => {
    if (node.state === "pending") return { ...node, state: "skipped" as const };
    if (node.state !== "running") return node;
    const message = `the console ended during the step ${node.step ?? "check"}`;
    return { ...node, state: "unknown" as const, message, finished_at: finishedAt };
  });
  return {
    ...record,
    state: "interrupted",
    reason: "the console ended in the middle of it; nothing of it goes on",
    seq: record.seq + 1,
    finished_at: finishedAt,
    can_go_back: nodes.some(goesBack),
    nodes,
  };
}
