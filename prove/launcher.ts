// The path of the program's launcher.
import { GROVE_LAUNCHER } from "#testing/grove-program.ts";

/**
 * The launcher: it sets the memory flags of a server, and then becomes the server. That of the sources, which may
 * have a bug planted; in a run of all tests that of their bundle, which starts in a third of the processor time.
 */
export const GROVE: string = GROVE_LAUNCHER;
