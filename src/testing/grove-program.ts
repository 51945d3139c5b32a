// The program that tests start: the sources, or the same in fewer files where the test run has bundled them.
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** A folder with the launcher and `dist/`, which tools/test-program.ts makes for a run of many files. */
const BUNDLE = process.env["GROVE_TEST_PROGRAM"];
const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The bundle's launcher with all that the one for users sets, for tests of loads; undefined without a bundle. */
export const GROVE_OF_USERS: string | undefined =
  BUNDLE === undefined ? undefined : join(BUNDLE, "grove-of-users");

/** The launcher. */
export const GROVE_LAUNCHER: string = join(BUNDLE ?? ROOT, "grove");

/** The entry for Node. */
export const GROVE_ENTRY: string =
  BUNDLE === undefined ? join(ROOT, "src/bin/grove.ts") : join(BUNDLE, "dist/bin/grove.js");
