// The background passes of a store: the scrub and the recount.

import type { PassName } from "#storage/contract/pass-types.ts";
import type { RecountSettings, RecountState, RecountWorkerData } from "#storage/contract/recount-types.ts";
import type { ScrubSettings, ScrubState, ScrubWorkerData } from "#storage/contract/scrub-types.ts";
import type { DataDirectory } from "#storage/metadata/data-directory.ts";
import type { PassDeps } from "#storage/scrub/background-pass.ts";
import type { DamageReader } from "#storage/scrub/damage-reader.ts";
import type { DamageReports } from "#storage/scrub/damage-reports.ts";
import { beginInThread } from "#storage/scrub/pass-worker.ts";
import { readRecountRecord, recountState, startRecount } from "#storage/scrub/recount.ts";
import { readScrubRecord, startScrub } from "#storage/scrub/scrub.ts";
import type { WriteQueue } from "#storage/writer/write-queue.ts";

/** Dependencies of the passes. */
export interface LocalPassesDeps extends Omit<PassDeps, "save"> {
  readonly queue: Pick<WriteQueue, "submit">;
  readonly data: Pick<DataDirectory, "path" | "databasePath">;
  readonly damage: Pick<DamageReports, "report">;
  readonly reader: Pick<DamageReader, "lastChunk" | "savedPass">;
}

/** The started passes. See Storage. */
export class LocalPasses {
  readonly #deps: LocalPassesDeps;
  #scrub: ReturnType<typeof startScrub> | undefined;
  #recount: ReturnType<typeof startRecount> | undefined;

  constructor(deps: LocalPassesDeps) {
    this.#deps = deps;
  }

  startScrub(settings: ScrubSettings): void {
    const { data, reader, logger } = this.#deps;
    const { bytesPerSecond } = settings;
    const place = { directory: data.path, databasePath: data.databasePath };
    this.#scrub = startScrub(
      {
        ...this.#parts("scrub"),
        lastChunk: () => reader.lastChunk(),
        begin(pass, tell) {
          const workerData: ScrubWorkerData = { ...place, bytesPerSecond, pass };
          return beginInThread({ name: "scrub", workerData, logger }, tell);
        },
      },
      settings,
    );
  }

  get scrubState(): ScrubState {
    if (this.#scrub !== undefined) return this.#scrub.state;
    return { ...readScrubRecord(this.#deps.reader.savedPass("scrub")), isRunning: false };
  }

  startRecount(settings: RecountSettings): void {
    const { data, logger } = this.#deps;
    const { databasePath } = data;
    const { rowsPerSecond } = settings;
    this.#recount = startRecount(
      {
        ...this.#parts("recount"),
        begin(pass, tell) {
          const workerData: RecountWorkerData = { databasePath, rowsPerSecond, pass };
          return beginInThread({ name: "recount", workerData, logger }, tell);
        },
      },
      settings,
    );
  }

  get recountState(): RecountState {
    if (this.#recount !== undefined) return recountState(this.#recount.state);
    return recountState({
      ...readRecountRecord(this.#deps.reader.savedPass("recount")),
      isRunning: false,
    });
  }

  /** Ends the current passes and saves their progress. */
  async stop(): Promise<void> {
    await Promise.all([this.#scrub?.stop(), this.#recount?.stop()]);
  }

  #parts(
    name: PassName,
  ): PassDeps & Pick<LocalPassesDeps, "damage"> & { readonly saved: string | undefined } {
    const { queue, reader } = this.#deps;
    return {
      ...this.#deps,
      save: (of, record) => queue.submit({ op: "savePass", name: of, record }),
      saved: reader.savedPass(name),
    };
  }
}
