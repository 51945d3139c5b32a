// Preloaded by tests: this process's program says that it has another version, as one before or after it would.
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";

const version = process.env["TEST_PRETENDED_VERSION"];
if (version !== undefined) {
  registerHooks({
    load(url, context, next) {
      if (!url.endsWith("/package.json") || url.includes("/node_modules/")) return next(url, context);
      const manifest = JSON.parse(readFileSync(new URL(url), "utf8")) as object;
      return { format: "json", shortCircuit: true, source: JSON.stringify({ ...manifest, version }) };
    },
  });
}
