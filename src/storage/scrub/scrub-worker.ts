// The scrub's thread: reads all stored bytes.
import type { DatabaseSync } from "node:sqlite";
import { workerData } from "node:worker_threads";
import type { DamagedBytes, ScrubPass, ScrubWorkerData } from "#storage/contract/scrub-types.ts";
import { type PassStep, runPass } from "./pass-thread.ts";
import { ScrubReader } from "./scrub-reader.ts";

const { directory, databasePath, bytesPerSecond, pass } = workerData as ScrubWorkerData;

await runPass<ScrubPass, DamagedBytes>({ databasePath, pass, perSecond: bytesPerSecond, steps });

function steps(db: DatabaseSync): (from: ScrubPass) => Generator<PassStep<ScrubPass, DamagedBytes>> {
  const reader = new ScrubReader(db, directory);
  return function* (from) {
    for (const step of reader.steps(from)) {
      const { found } = step;
      const part = { pass: step.pass, cost: step.readBytes };
      yield found?.kind === "database"
        ? { ...part, found: undefined, damage: found.problem }
        : { ...part, found };
    }
  };
}
