// Threads that the code under test starts run the bundle of a test run, which loads in half the time.
import { syncBuiltinESMExports } from "node:module";
import { basename, join } from "node:path";
import threads, { type WorkerOptions } from "node:worker_threads";

const SOURCES = new URL("../src/", import.meta.url).href;
const OF_THREAD = /-worker\.ts$/;

/**
 * Lets threads of this process begin with their bundled modules.
 * @param program - The folder that `bundleProgram` has made of the same sources
 */
export function startThreadsFrom(program: string): void {
  const bundled = (file: string | URL): string | URL => {
    const url = String(file);
    if (!url.startsWith(SOURCES) || !OF_THREAD.test(url)) return file;
    return join(program, "dist/bin", `${basename(url, ".ts")}.js`);
  };
  threads.Worker = class extends threads.Worker {
    constructor(file: string | URL, options?: WorkerOptions) {
      const own = bundled(file);
      // What is loaded first into test processes is not for bundled threads.
      super(own, own === file ? options : { execArgv: [], ...options });
    }
  };
  // Puts it behind imports by name too.
  syncBuiltinESMExports();
}
