// The command as people type it, signed in to a FileServer of the benchmark.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Lab } from "./lab.ts";
import { type FileServerPair, GROVE, OWNER } from "./node.ts";
import { certificateFolder, type Security } from "./pair.ts";

const run = promisify(execFile);

/** Runs `grove` with these words to its end. Throws when it fails. */
export type Command = (...words: string[]) => Promise<void>;

/** Signs the command in to the server, with a configuration folder of its own. */
export async function signedInCommand(lab: Lab, pair: FileServerPair, security: Security): Promise<Command> {
  const env = { ...process.env, GROVE_CONFIG_DIR: join(await lab.folder("memory"), "config") };
  const command: Command = async (...words) => {
    await run(GROVE, words, { env });
  };
  const trusted = security === "plain" ? [] : ["--ca", join(await certificateFolder(lab), "ca.crt")];
  await command("login", "--mock", OWNER, "--fileserver", pair.address, ...trusted);
  return command;
}
