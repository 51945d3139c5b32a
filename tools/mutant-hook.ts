// Loaded by --import into a mutant's tests: replaces one source file's text, or measures processor time.
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { type Mutation, withMutation } from "./mutations.ts";

/** The environment variable with the mutation as JSON; its path is an absolute URL. */
export const MUTANT = "GROVE_MUTANT";

const mutation = JSON.parse(process.env[MUTANT] ?? "null") as Mutation | null;
if (mutation === null) {
  process.once("exit", () => {
    const { user, system } = process.cpuUsage();
    console.log(`# processor ${Math.ceil((user + system) / 1_000)} ms`);
  });
} else {
  registerHooks({
    load(url, context, next) {
      if (url !== mutation.path) return next(url, context);
      const source = withMutation(readFileSync(fileURLToPath(url), "utf8"), mutation);
      return { format: "module-typescript", source, shortCircuit: true };
    },
  });
}
