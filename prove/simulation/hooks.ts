// Gives the product's unchanged modules simulated parts of Node in place of the real ones.
import { readFileSync } from "node:fs";
import { registerHooks, stripTypeScriptTypes } from "node:module";

const PLATFORM = new URL("./platform/", import.meta.url);
const SOURCES = new URL("../../src/", import.meta.url).href;

/** Imports of src/, and their replacements. */
const REPLACED: Readonly<Record<string, string>> = {
  "node:worker_threads": "threads.ts",
  "node:fs": "files.ts",
  "node:fs/promises": "file-promises.ts",
  "node:sqlite": "database.ts",
  "node:http2": "http2.ts",
  "node:net": "net.ts",
  "node:timers/promises": "timer-promises.ts",
  "node:crypto": "chance.ts",
};
/** Not simulated: an HTTP listener that no client calls. */
const STATUS_SERVER = "#os/status-server.ts";

/** Modules of workers, each loaded again for every worker, without their types. */
const workers = new Map<string, string>();

function loadWorker(url: string): { format: "module"; source: string; shortCircuit: true } {
  const file = new URL(url);
  file.search = "";
  let source = workers.get(file.href);
  if (source === undefined) {
    source = stripTypeScriptTypes(readFileSync(file, "utf8"));
    workers.set(file.href, source);
  }
  return { format: "module", source, shortCircuit: true };
}

/** Must run before the first module of src/ is loaded. */
export function installHooks(): void {
  registerHooks({
    resolve(specifier, context, next) {
      const parent = context.parentURL ?? "";
      if (!parent.startsWith(SOURCES)) return next(specifier, context);
      const worker = /\?worker=(\d+)$/.exec(parent)?.[1];
      if (specifier === "node:worker_threads" && worker !== undefined)
        return { url: `simulated:worker?${worker}`, format: "module", shortCircuit: true };
      if (specifier === STATUS_SERVER)
        return { url: new URL("status-server.ts", PLATFORM).href, shortCircuit: true };
      const file = REPLACED[specifier];
      return file === undefined
        ? next(specifier, context)
        : { url: new URL(file, PLATFORM).href, shortCircuit: true };
    },
    load(url, context, next) {
      const worker = /^simulated:worker\?(\d+)$/.exec(url)?.[1];
      if (worker === undefined) return url.includes("?worker=") ? loadWorker(url) : next(url, context);
      const threads = JSON.stringify(new URL("threads.ts", PLATFORM).href);
      const source = `import { started } from ${threads};
        export * from ${threads};
        const own = started.get(${worker});
        export const workerData = own.workerData;
        export const parentPort = own.parentPort;`;
      return { format: "module", source, shortCircuit: true };
    },
  });
}
