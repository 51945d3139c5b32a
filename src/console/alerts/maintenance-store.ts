// Nodes that operators put into maintenance, which mutes their notifications until its end (decision D11).
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import {
  type MaintenanceRequest,
  type StoredMaintenance,
  storedMaintenance,
} from "#wire/webapi/maintenance.ts";
import { JsonStateFile } from "./json-state-file.ts";
import { timesOf } from "./silence-times.ts";

/** Name of the file in the console's data folder. */
export const MAINTENANCE_FILE = "maintenance.json";

/** What the store needs. */
export interface MaintenanceStoreDeps {
  readonly dataFolder: string;
  readonly clock: Clock;
  readonly log: Logger;
}

const FILE_SHAPE = z.object({
  maintenance: z.array(storedMaintenance),
  /** Nodes whose maintenance ended early and whose end is not yet written to the metadata store. */
  untold: z.array(z.string()).default([]),
});

interface MaintenanceContent {
  readonly entries: ReadonlyMap<string, StoredMaintenance>;
  readonly untold: ReadonlySet<string>;
}

/** Maintenance by node. It ends by the wall clock; changes are on stable storage before they take effect. */
export class MaintenanceStore {
  /** New path of a damaged file at the start; undefined without damage. */
  readonly setAsideAs: string | undefined;
  readonly #clock: Clock;
  readonly #file: JsonStateFile<z.infer<typeof FILE_SHAPE>>;
  #entries: ReadonlyMap<string, StoredMaintenance>;
  #untold: ReadonlySet<string>;
  /** Changes run one after another. */
  #lastChange: Promise<unknown> = Promise.resolve();

  private constructor(
    clock: Clock,
    file: JsonStateFile<z.infer<typeof FILE_SHAPE>>,
    { entries, untold }: MaintenanceContent,
    setAsideAs: string | undefined,
  ) {
    this.setAsideAs = setAsideAs;
    this.#clock = clock;
    this.#file = file;
    this.#entries = entries;
    this.#untold = untold;
  }

  /** Reads the file, a missing one as empty. Sets a damaged one aside, because too many alerts are safer. */
  static async open({ dataFolder, clock, log }: MaintenanceStoreDeps): Promise<MaintenanceStore> {
    const path = join(dataFolder, MAINTENANCE_FILE);
    const { file, content, setAsideAs } = await JsonStateFile.open({ path, shape: FILE_SHAPE, clock, log });
    const entries = new Map((content?.maintenance ?? []).map((kept) => [kept.node_id, kept]));
    return new MaintenanceStore(clock, file, { entries, untold: new Set(content?.untold) }, setAsideAs);
  }

  /** The node's maintenance; undefined without one. */
  of(nodeId: string): StoredMaintenance | undefined {
    const kept = this.#entries.get(nodeId);
    return kept === undefined || this.#isOver(kept) ? undefined : kept;
  }

  /** All nodes in maintenance, by id. */
  list(): StoredMaintenance[] {
    return [...this.#entries.values()]
      .filter((kept) => !this.#isOver(kept))
      .toSorted((a, b) => (a.node_id < b.node_id ? -1 : 1));
  }

  /**
   * Puts a node into maintenance, or changes its end; resolves when that is on stable storage and in force.
   * Throws BAD_ARGUMENT with metadata `pointer` for an end in the past or after more than a year.
   */
  begin(nodeId: string, request: MaintenanceRequest, createdBy: string): Promise<StoredMaintenance> {
    return this.#change(() => {
      const now = this.#nowSeconds();
      const { endsAt } = timesOf(request, now);
      const kept: StoredMaintenance = {
        node_id: nodeId,
        starts_at: this.of(nodeId)?.starts_at ?? now,
        ends_at: endsAt,
        created_by: createdBy,
        comment: request.comment,
      };
      const untold = new Set([...this.#untold].filter((id) => id !== nodeId));
      return { kept: { entries: new Map(this.#entries).set(nodeId, kept), untold }, answer: kept };
    });
  }

  /** Ends a node's maintenance; resolves with it on stable storage, or undefined when there was none. */
  end(nodeId: string): Promise<StoredMaintenance | undefined> {
    return this.#change(() => {
      const kept = this.of(nodeId);
      if (kept === undefined) return { kept: undefined, answer: undefined };
      const entries = new Map(this.#entries);
      entries.delete(nodeId);
      const untold = new Set(this.#untold).add(nodeId);
      return { kept: { entries, untold }, answer: { ...kept, ends_at: this.#nowSeconds() } };
    });
  }

  /**
   * Nodes whose maintenance ended early and whose end the metadata store lacks, also from before a restart.
   */
  untold(): string[] {
    return [...this.#untold];
  }

  /** Records that the metadata store has the end of a node's maintenance. */
  async told(nodeId: string): Promise<void> {
    await this.#change(() => {
      if (!this.#untold.has(nodeId)) return { kept: undefined, answer: undefined };
      const untold = new Set([...this.#untold].filter((id) => id !== nodeId));
      return { kept: { entries: new Map(this.#entries), untold }, answer: undefined };
    });
  }

  #change<R>(
    change: () => {
      kept: (MaintenanceContent & { entries: Map<string, StoredMaintenance> }) | undefined;
      answer: R;
    },
  ): Promise<R> {
    const mine = this.#lastChange.then(async () => {
      const { kept, answer } = change();
      if (kept !== undefined) {
        const { entries, untold } = kept;
        for (const [nodeId, each] of entries) if (this.#isOver(each)) entries.delete(nodeId);
        await this.#file.save({ maintenance: [...entries.values()], untold: [...untold] });
        this.#entries = entries;
        this.#untold = untold;
      }
      return answer;
    });
    this.#lastChange = mine.catch(() => undefined);
    return mine;
  }

  #isOver({ ends_at: endsAt }: StoredMaintenance): boolean {
    return this.#nowSeconds() >= endsAt;
  }

  #nowSeconds(): number {
    return Math.trunc(this.#clock.wallMs() / 1_000);
  }
}
