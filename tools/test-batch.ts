// A process of several test files, given as arguments: each is a suite named by its path, with its own hooks.
import { join } from "node:path";
import { suite } from "node:test";
import { pathToFileURL } from "node:url";

const [timeoutMs, ...paths] = process.argv.slice(2);

for (const path of paths) {
  suite(path, { timeout: Number(timeoutMs) }, async () => {
    await import(pathToFileURL(join(process.cwd(), path)).href);
  });
}
