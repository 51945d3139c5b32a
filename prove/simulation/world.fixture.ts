// The process that simulates seeds: one line of JSON for each number on its standard input.
import { createInterface } from "node:readline";
import { installHooks } from "./hooks.ts";
import { installGlobals } from "./platform/globals.ts";

const [under = "/dev/shm", faults = "20", slotMs = "360000"] = process.argv.slice(2);
installHooks();
installGlobals();
// Imported late, so that the hooks hold for everything that it loads.
const { runSeed } = await import("./world.ts");
for await (const line of createInterface({ input: process.stdin })) {
  const result = await runSeed(Number(line), under, { faults: Number(faults), slotMs: Number(slotMs) });
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
process.exit(0);
