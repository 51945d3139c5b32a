// A pass of a background job in a thread of its own, as the main thread sees it.
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import { errorText, type Logger } from "#base/log.ts";
import type { PassName } from "#storage/contract/pass-types.ts";
import type { PassRun, TellPass } from "./background-pass.ts";

const HEAP_MEBIBYTES = 64;
const YOUNG_MEBIBYTES = 4;

/** Begins a pass in the thread that has the job's name. */
export function beginInThread<Pass, Found>(
  { name, workerData, logger }: { name: PassName; workerData: object; logger: Logger },
  tell: TellPass<Pass, Found>,
): PassRun {
  // The worker lies beside this file in the sources, and beside the bundle.
  const worker = new Worker(new URL(`./${name}-worker${extname(import.meta.url)}`, import.meta.url), {
    workerData,
    name: `grove-storage-${name}`,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MEBIBYTES, maxYoungGenerationSizeMb: YOUNG_MEBIBYTES },
  });
  worker.on("message", tell);
  worker.on("error", (error) => logger.error(`storage.${name}_failed`, { error: errorText(error) }));
  const ended = new Promise<void>((resolve) => {
    worker.on("exit", () => resolve());
  });
  return { ended, stop: () => worker.postMessage("stop", []), leave: () => worker.unref() };
}
