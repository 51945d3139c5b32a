// Compiled libraries inside of a program that is one file (Node's "single executable").
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getRawAsset, isSea } from "node:sea";

/** True in a program that is one file, where no package can be loaded from a folder. */
export const isOneFile = (): boolean => isSea();

/**
 * Loads a library that was put into the program's file. It stands on disk for that moment alone, in a folder of
 * this user's. Throws where it is missing, or where no program may be run from there.
 */
export function loadEmbedded(name: string): unknown {
  const bytes = new Uint8Array(getRawAsset(name));
  const folder = mkdtempSync(join(tmpdir(), "grove-library-"));
  try {
    const path = join(folder, `${name}.node`);
    writeFileSync(path, bytes, { mode: 0o600, flag: "wx" });
    const library: { exports: unknown } = { exports: {} };
    process.dlopen(library, path);
    return library.exports;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
