// The entry point: arguments in, exit code out. Kept small, since each start compiles all its imports.
import { enableCompileCache } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

// The launcher sets NODE_COMPILE_CACHE for this; a Node started by hand lacks it. The folder is the user's
// own, not Node's default in the shared /tmp, since another user could put code there.
enableCompileCache(
  process.env["NODE_COMPILE_CACHE"] ??
    join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "grove", "compiled"),
);

const [{ run }, { COMMAND_GROUPS }] = await Promise.all([import("./run.ts"), import("./commands.ts")]);
const exitCode = await run(process.argv.slice(2), COMMAND_GROUPS);
// Never process.exit(): pending output would be lost, and each command closes its own handles.
if (exitCode !== 0) process.exitCode = exitCode;
