// Programs of released versions, kept as bundles beside this file, and the one of this folder.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { type Ended, type Program, type ProgramSettings, startGrove, startProgram } from "#e2e/processes.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";

const HERE = import.meta.dirname;
const BUNDLE = /^grove-(.*)\.tar\.zst$/;

/** A version of Grove that can be run. */
export interface Release {
  readonly version: string;
  start(words: readonly string[], settings?: ProgramSettings): Program;
}

/** Versions whose programs are kept, the oldest first. */
export const KEPT: readonly string[] = readdirSync(HERE)
  .flatMap((name) => BUNDLE.exec(name)?.[1] ?? [])
  .toSorted((a, b) => a.localeCompare(b, "en", { numeric: true }));

/** The program of this folder. */
export const PRESENT: Release = { version: "present", start: startGrove };

/** Unpacks a version's bundle. */
export function released(version: string): Release {
  const folder = scratchFolder(`grove-${version}-`);
  unpack(join(HERE, `grove-${version}.tar.zst`), folder);
  const main = join(folder, "dist/bin/grove.js");
  return { version, start: (words, settings) => startProgram(process.execPath, [main, ...words], settings) };
}

/** Unpacks an archive into a folder. */
export function unpack(archive: string, folder: string): void {
  const content = zstdDecompressSync(readFileSync(archive));
  execFileSync("tar", ["-xf", "-", "-C", folder, "--no-same-owner"], { input: content });
}

/** Runs a program of a release to its end. */
export function run(release: Release, words: readonly string[], settings?: ProgramSettings): Promise<Ended> {
  return release.start(words, settings).ended;
}
