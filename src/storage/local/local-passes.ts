// The background passes of a store: the scrub and the recount.

import type { RecountSettings, RecountState } from "#storage/contract/recount-types.ts";
import type { ScrubSettings, ScrubState } from "#storage/contract/scrub-types.ts";
import type { DataDirectory } from "#storage/metadata/data-directory.ts";
import type { PassDeps } from "#storage/scrub/background-pass.ts";
import type { DamageReader } from "#storage/scrub/damage-reader.ts";
import type { DamageReports } from "#storage/scrub/damage-reports.ts";
import { readRecountRecord, recountState, startRecount } from "#storage/scrub/recount.ts";
import { readScrubRecord, startScrub } from "#storage/scrub/scrub.ts";

/** Dependencies of the passes. */
export interface LocalPassesDeps extends PassDeps {
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
    const { data, reader } = this.#deps;
    const place = { directory: data.path, databasePath: data.databasePath };
    const saved = reader.savedPass("scrub");
    this.#scrub = startScrub(
      { ...this.#deps, ...place, saved, lastChunk: () => reader.lastChunk() },
      settings,
    );
  }

  get scrubState(): ScrubState {
    if (this.#scrub !== undefined) return this.#scrub.state;
    return { ...readScrubRecord(this.#deps.reader.savedPass("scrub")), isRunning: false };
  }

  startRecount(settings: RecountSettings): void {
    const { data, reader } = this.#deps;
    const { databasePath } = data;
    this.#recount = startRecount(
      { ...this.#deps, databasePath, saved: reader.savedPass("recount") },
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
}
