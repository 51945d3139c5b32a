// Runs an operator's commands on a cluster inside the process of a test, without a start of Node for each.
import { Command } from "commander";
import { commandHere } from "#client/terminal/command-here.fixture.ts";
import { processTerminal, type Terminal } from "#client/terminal/terminal.ts";
import { type Ended, environmentOf, grove, type ProgramSettings } from "./processes.ts";

/** What such a command's module has. */
interface OperatorModule {
  command(terminal?: Terminal): Command;
}

/** The verbs of `grove user` for people with a new address. */
async function renames(): Promise<OperatorModule> {
  const { addRenameVerbs } = await import("#metaserver/process/rebind-user-command.ts");
  return {
    command(terminal = processTerminal()) {
      const group = new Command("user");
      addRenameVerbs(group, terminal);
      return group;
    },
  };
}

/** The commands that are given their terminal, some by their first two words. */
const MODULES: Readonly<Record<string, () => Promise<OperatorModule>>> = {
  ca: () => import("#metaserver/process/ca-command.ts"),
  node: () => import("#metaserver/process/node-command.ts"),
  rebalance: () => import("#metaserver/process/rebalance-command.ts"),
  root: () => import("#metaserver/process/root-move-command.ts"),
  "user rename": renames,
  "user renames": renames,
};

/** Runs an operator's command to its end, with the result of `grove()`. What is no such command goes to the program. */
export async function operatorHere(words: readonly string[], settings: ProgramSettings = {}): Promise<Ended> {
  const [name = "", ...rest] = words;
  const key = [name, `${name} ${rest[0]}`].find((known) => Object.hasOwn(MODULES, known)) ?? "";
  const load = settings.cwd === undefined ? MODULES[key] : undefined;
  if (load === undefined) return grove(words, settings);
  const { command } = await load();
  const { input = "" } = settings;
  const stdin = typeof input === "string" ? input : Buffer.from(input);
  const { code, out, err } = await commandHere(command, rest, { stdin, env: environmentOf(settings) });
  return { code, stdout: out, stderr: err };
}
