// Writes compressed copies of the build's files, so that the console need not compress per request.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Plugin } from "vite";

const WORTH_IT = /\.(?:m?js|css|html|svg)$/;
const WORTH_BYTES = 1_024;

/** Adds .br and .gz beside each file of at least 1 KiB. */
export function compressed(folder: string): Plugin {
  return {
    name: "compressed",
    apply: "build",
    async closeBundle() {
      const files = await readdir(folder, { recursive: true });
      await Promise.all(
        files.filter((file) => WORTH_IT.test(file)).map((file) => compress(join(folder, file))),
      );
    },
  };
}

async function compress(path: string): Promise<void> {
  const bytes = await readFile(path);
  if (bytes.length < WORTH_BYTES) return;
  const smallest = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } };
  await writeFile(`${path}.br`, await promisify(brotliCompress)(bytes, smallest));
  await writeFile(`${path}.gz`, await promisify(gzip)(bytes, { level: 9 }));
}
