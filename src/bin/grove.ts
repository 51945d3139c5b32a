// Where the program starts: arguments in, exit code out. Kept tiny, since whatever it imports is compiled on every start.
import { enableCompileCache } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

// Compiled code is kept in the user's own cache folder, not in the shared /tmp that is Node's default: what
// another user could put there, we would run. A folder that cannot be written only costs time.
enableCompileCache(
  process.env["NODE_COMPILE_CACHE"] ??
    join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "grove", "compiled"),
);

const { run } = await import("./run.ts");
const exitCode = await run(process.argv.slice(2));
// Never process.exit(): output still on its way would be lost, and open handles are a command's own affair.
if (exitCode !== 0) process.exitCode = exitCode;
