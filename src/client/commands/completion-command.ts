// The command `completion`: prints scripts that complete commands, options and paths in bash, zsh and fish.
import { Argument, Command } from "commander";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { writeAll } from "#client/terminal/terminal.ts";
import { type CommandCompletion, completionScript, SHELLS, type ShellName } from "./completion-scripts.ts";
import { completePath } from "./path-completion.ts";
import { VERBS, type Words } from "./verbs.ts";

/** A command of the program, as its table has it. */
export interface CompletedCommand {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<{ readonly command: () => Command }>;
}

/**
 * Words after the commands outside the client's shell: they run servers, and take local files and folders.
 */
const OTHER_WORDS: Readonly<Record<string, Words>> = {
  write: "remote",
  shell: "none",
  login: "local",
  logout: "none",
  trash: "none",
  completion: "none",
};

/** Makes the parser of `grove completion` for a program of these commands. */
export function completionOf(
  commands: () => readonly CompletedCommand[],
  host: CommandHost = processHost(),
): Command {
  const paths = withClientFlags(
    new Command("paths").argument("[beginning]", "the beginning of a path on the cluster", ""),
    [["grove completion paths do", "what the scripts call: docs/, downloads/"]],
  ).action((typed: string, flags: ClientFlags) =>
    host.run("completion", flags, async (context) => {
      // Tab completion prints no errors; a failure just yields no candidates.
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
        await writeAll(context.terminal.output, completionScript(shell, await collect(commands())));
      }),
    )
    .addCommand(paths, { hidden: true });
}

/** Each command and subcommand with its options, read from its parser. */
async function collect(commands: readonly CompletedCommand[]): Promise<CommandCompletion[]> {
  const found = await Promise.all(
    commands.map(async ({ name, summary, load }) => {
      const parser = (await load()).command();
      const kind = VERBS[name]?.words ?? OTHER_WORDS[name] ?? "local";
      const children = name === "completion" ? [] : parser.commands;
      return [
        completionFor(parser, { name, summary, kind }),
        ...children.map((child) =>
          completionFor(child, {
            name: `${name} ${child.name()}`,
            summary: child.description(),
            kind: kind === "remote" ? "none" : kind,
          }),
        ),
      ];
    }),
  );
  return found.flat();
}

function completionFor(
  parser: Command,
  about: { readonly name: string; readonly summary: string; readonly kind: Words },
): CommandCompletion {
  const options = parser.options.flatMap(({ short, long }) => [short, long]).filter((word) => word != null);
  const choices = parser.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  const children = about.name === "completion" ? [] : parser.commands.map((child) => child.name());
  return { ...about, options: [...options, "--help"], words: [...choices, ...children] };
}
