// The verb `completion`: prints scripts that make bash, zsh and fish complete verbs, options and paths on the cluster.
import { Argument, Command } from "commander";
import { type ClientFlags, withClientFlags } from "./client-flags.ts";
import { type CommandHost, processHost } from "./command-host.ts";
import { completionScript, SHELLS, type ShellName, type VerbCompletion } from "./completion-scripts.ts";
import { completePath } from "./path-completion.ts";
import { writeAll } from "./terminal.ts";
import { VERBS, type Verb } from "./verbs.ts";

/** The verbs that only stand alone. */
const OTHER_VERBS: Readonly<Record<string, Verb>> = {
  write: { words: "remote", load: () => import("./write-command.ts") },
  login: { words: "none", load: () => import("./login-command.ts") },
  logout: { words: "none", load: () => import("./logout-command.ts") },
  shell: { words: "none", load: () => import("./shell-command.ts") },
  completion: { words: "none", load: async () => ({ command }) },
};

/** Commands that run servers: their names are completed, their options are not. */
const SERVER_COMMANDS = ["up", "fileserver", "metaserver", "fsck", "audit"] as const;

/** Makes the parser of `grove completion`. */
export function command(host: CommandHost = processHost()): Command {
  const paths = withClientFlags(
    new Command("paths").argument("[beginning]", "the beginning of a path on the cluster", ""),
    [["grove completion paths do", "what the scripts call: docs/, downloads/"]],
  ).action((typed: string, flags: ClientFlags) =>
    host.run("completion", flags, async (context) => {
      // Whoever presses Tab is not told what is wrong; there are just no candidates.
      await context.print(...(await completePath(context, typed).catch(() => [])));
    }),
  );
  return withClientFlags(
    new Command("completion")
      .description("Print the completion script of a shell, for its start-up file.")
      .addArgument(new Argument("<shell>", "which shell").choices(SHELLS)),
    [
      ["grove completion bash > ~/.local/share/bash-completion/completions/grove", "for bash"],
      ["grove completion zsh > ~/.zfunc/_grove", "for zsh, with ~/.zfunc in fpath"],
      ["grove completion fish > ~/.config/fish/completions/grove.fish", "for fish"],
    ],
  )
    .action((shell: ShellName, flags: ClientFlags) =>
      host.run("completion", flags, async (context) => {
        await writeAll(context.terminal.output, completionScript(shell, await collectVerbs()));
      }),
    )
    .addCommand(paths, { hidden: true });
}

/** Each command with its options, as its own parser knows them. */
async function collectVerbs(): Promise<VerbCompletion[]> {
  const verbs: VerbCompletion[] = [];
  for (const [name, verb] of Object.entries({ ...VERBS, ...OTHER_VERBS })) {
    const parser = (await verb.load()).command();
    const options = [parser, ...parser.commands]
      .flatMap((each) => each.options)
      .flatMap((option) => [option.short, option.long])
      .filter((word) => word != null)
      .filter((word, at, all) => all.indexOf(word) === at);
    const words = name === "completion" ? SHELLS : parser.commands.map((child) => child.name());
    verbs.push({ name, options: [...options, "--help"], words, kind: verb.words });
  }
  for (const name of SERVER_COMMANDS) verbs.push({ name, options: ["--help"], words: [], kind: "none" });
  return verbs;
}
