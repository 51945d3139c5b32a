// Where the program starts: arguments in, exit code out. Kept tiny, since whatever it imports is compiled on every start.
import { enableCompileCache } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

// The launcher has done this already by NODE_COMPILE_CACHE; a Node started by hand has not. The folder is the
// user's own and not the shared /tmp that is Node's default: what another user could put there, we would run.
enableCompileCache(
  process.env["NODE_COMPILE_CACHE"] ??
    join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "grove", "compiled"),
);

const { run } = await import("./run.ts");
const exitCode = await run(process.argv.slice(2));
// Never process.exit(): output still on its way would be lost, and open handles are a command's own affair.
if (exitCode !== 0) process.exitCode = exitCode;
