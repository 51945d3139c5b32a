// The path of the program's launcher, and where what it starts keeps compiled code.
import { fileURLToPath } from "node:url";
import { GROVE_OF_USERS } from "#testing/grove-program.ts";

/** The launcher of the sources, for rigs that replace texts of single modules. */
export const GROVE_OF_SOURCES: string = fileURLToPath(new URL("../grove", import.meta.url));

/**
 * The launcher: it sets the memory flags of a server, and then becomes the server. That of the sources, which may
 * have a bug planted; in a run of all tests that of their bundle, which starts in less than half the processor time.
 */
export const GROVE: string = GROVE_OF_USERS ?? GROVE_OF_SOURCES;

/** V8's compile cache of a run of tests, or else this folder, which those that are killed leave empty. */
export function compiledIn(folder: string): string {
  return process.env["NODE_COMPILE_CACHE"] ?? folder;
}
