// The entry point of the client as one file: its commands alone, without servers.
import { CLIENT_GROUPS } from "./client-commands.ts";
import { run } from "./run.ts";

const exitCode = await run(process.argv.slice(2), CLIENT_GROUPS);
// Never process.exit(): pending output would be lost, and each command closes its own handles.
if (exitCode !== 0) process.exitCode = exitCode;
