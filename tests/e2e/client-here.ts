// Runs the client's commands inside the process of a test: the code of ./grove without a start of Node for each.
import { join } from "node:path";
import { CommanderError } from "commander";
import { runVerb } from "#client/commands/client.fixture.ts";
import { VERBS, type VerbModule } from "#client/commands/verbs.ts";
import { type Ended, environmentOf, grove, type ProgramSettings } from "./processes.ts";

/** The verbs of the shell, and those that stand alone. */
const MODULES: Readonly<Record<string, () => Promise<VerbModule>>> = {
  ...Object.fromEntries(Object.entries(VERBS).map(([name, { load }]) => [name, load])),
  "app-password": () => import("#client/commands/app-password-command.ts"),
  browser: () => import("#client/commands/browser-command.ts"),
  group: () => import("#client/administration/group-command.ts"),
  login: () => import("#client/commands/login-command.ts"),
  logout: () => import("#client/commands/logout-command.ts"),
  user: () => import("#client/administration/user-command.ts"),
  write: () => import("#client/commands/write-command.ts"),
};

// Times are printed in UTC, as by a program that a test starts. Each command that runs listens to signals.
process.env["TZ"] = "UTC";
process.setMaxListeners(0);

/**
 * Runs a command of the client to its end, with the result of `grove()`. What is no such command, and what the
 * parser refuses, goes to the program.
 */
export async function groveHere(words: readonly string[], settings: ProgramSettings = {}): Promise<Ended> {
  const [name = "", ...rest] = words;
  const load = Object.hasOwn(MODULES, name) && settings.cwd === undefined ? MODULES[name] : undefined;
  if (load === undefined) return grove(words, settings);
  const { input = "" } = settings;
  const env = environmentOf(settings);
  // The system's folder is that of this process, whatever a command's settings say.
  if (env["XDG_CONFIG_HOME"] !== undefined) env["GROVE_CONFIG_DIR"] ??= join(env["XDG_CONFIG_HOME"], "grove");
  const stdin = typeof input === "string" ? input : Buffer.from(input);
  try {
    const { code, out, err } = await runVerb(await load(), rest, env, { stdin });
    return { code, stdout: out, stderr: err };
  } catch (error) {
    // Nothing has been done, and the words about that are the program's.
    if (error instanceof CommanderError) return grove(words, settings);
    throw error;
  }
}
