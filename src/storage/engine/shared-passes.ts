// The background passes of a process on the shared engine: the scrub and the recount of the roots held here.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import type { PassName } from "#storage/contract/pass-types.ts";
import type { RecountSettings, RecountState } from "#storage/contract/recount-types.ts";
import type { ScrubSettings, ScrubState } from "#storage/contract/scrub-types.ts";
import type { PassDeps } from "#storage/scrub/background-pass.ts";
import type { DamageReports } from "#storage/scrub/damage-reports.ts";
import { beginInTurns } from "#storage/scrub/pass-turns.ts";
import { readRecountRecord, recountState, startRecount } from "#storage/scrub/recount.ts";
import { readScrubRecord, startScrub } from "#storage/scrub/scrub.ts";
import { SharedRecount } from "./shared-recount.ts";
import { StoreScrub, type StoreScrubDeps } from "./store-scrub.ts";

/** Dependencies of the passes. */
export interface SharedPassesDeps extends StoreScrubDeps {
  /** The process's own folder: how far it has come, which nothing else needs. */
  readonly folder: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly damage: Pick<DamageReports, "report">;
}

/** The started passes. See Storage. */
export class SharedPasses {
  readonly #deps: SharedPassesDeps;
  #scrub: ReturnType<typeof startScrub> | undefined;
  #recount: ReturnType<typeof startRecount> | undefined;

  constructor(deps: SharedPassesDeps) {
    this.#deps = deps;
  }

  startScrub(settings: ScrubSettings): void {
    const { clock, logger } = this.#deps;
    const scrub = new StoreScrub(this.#deps);
    const perSecond = settings.bytesPerSecond;
    const steps = scrub.steps.bind(scrub);
    this.#scrub = startScrub(
      {
        ...this.#parts("scrub"),
        // The pass asks the database for it.
        lastChunk: () => 0,
        begin: (pass, tell) => beginInTurns({ name: "scrub", perSecond, steps, clock, logger }, pass, tell),
      },
      settings,
    );
  }

  get scrubState(): ScrubState {
    return this.#scrub?.state ?? { ...readScrubRecord(this.#saved("scrub")), isRunning: false };
  }

  startRecount(settings: RecountSettings): void {
    const { clock, logger } = this.#deps;
    const recount = new SharedRecount(this.#deps);
    const perSecond = settings.rowsPerSecond;
    const steps = recount.steps.bind(recount);
    this.#recount = startRecount(
      {
        ...this.#parts("recount"),
        begin: (pass, tell) => beginInTurns({ name: "recount", perSecond, steps, clock, logger }, pass, tell),
      },
      settings,
    );
  }

  get recountState(): RecountState {
    return recountState(
      this.#recount?.state ?? { ...readRecountRecord(this.#saved("recount")), isRunning: false },
    );
  }

  /** Ends the current passes and saves their progress. */
  async stop(): Promise<void> {
    await Promise.all([this.#scrub?.stop(), this.#recount?.stop()]);
  }

  #parts(name: PassName): PassDeps & SharedPassesDeps & { readonly saved: string | undefined } {
    return {
      ...this.#deps,
      save: (of, record) => writeFileAtomic(this.#fileOf(of), record),
      saved: this.#saved(name),
      // PostgreSQL checks its own pages.
      failed: () => undefined,
    };
  }

  #saved(name: PassName): string | undefined {
    const file = this.#fileOf(name);
    return existsSync(file) ? readFileSync(file, "utf8") : undefined;
  }

  #fileOf(name: PassName): string {
    return join(this.#deps.folder, `${name}.json`);
  }
}
