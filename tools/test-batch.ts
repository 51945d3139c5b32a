// A process of several test files, given as arguments: each is a suite named by its path, with its own hooks.
import { join } from "node:path";
import { suite } from "node:test";
import { pathToFileURL } from "node:url";

const [timeoutMs, ...paths] = process.argv.slice(2);

for (const path of paths) {
  suite(path, { timeout: Number(timeoutMs) }, async () => {
    // The suite's own limit begins when its tests are known.
    const tooLong = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => tooLong.reject(new Error(`${path} is not loaded in time`)),
      Number(timeoutMs),
    );
    try {
      await Promise.race([import(pathToFileURL(join(process.cwd(), path)).href), tooLong.promise]);
    } finally {
      clearTimeout(timer);
    }
  });
}
