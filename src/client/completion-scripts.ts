// The text of the completion scripts, made from the verbs and their options.
import type { Words } from "./verbs.ts";

/** Shells that there is a script for. */
export const SHELLS = ["bash", "zsh", "fish"] as const;

/** One of them. */
export type ShellName = (typeof SHELLS)[number];

/** What a script needs to know of a verb. */
export interface VerbCompletion {
  readonly name: string;
  readonly options: readonly string[];
  /** Fixed words that may follow. */
  readonly words: readonly string[];
  readonly kind: Words;
}

/** The script of a shell. Names and options are ours, of letters, digits and hyphens, so nothing needs quoting. */
export function completionScript(shell: ShellName, verbs: readonly VerbCompletion[]): string {
  const makers: Readonly<Record<ShellName, (verbs: readonly VerbCompletion[]) => string>> = {
    bash: bashScript,
    zsh: zshScript,
    fish: fishScript,
  };
  return makers[shell](verbs);
}

function bashScript(verbs: readonly VerbCompletion[]): string {
  const places: Readonly<Record<Words, string>> = {
    remote: "remote",
    "local then remote": "both",
    "remote then local": "both",
    none: "none",
  };
  const cases = verbs.map((verb) => {
    return `    ${verb.name}) options="${[...verb.options, ...verb.words].join(" ")}" places=${places[verb.kind]} ;;`;
  });
  return `# Completion of grove for bash.
_grove() {
  local word=\${COMP_WORDS[COMP_CWORD]} options= places=none
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${verbs.map((verb) => verb.name).join(" ")} help --version" -- "$word"))
    return
  fi
  case \${COMP_WORDS[1]} in
${cases.join("\n")}
  esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")); return ;;
  esac
  local IFS=$'\\n'
  if [ "$places" = none ]; then
    COMPREPLY=($(IFS=' '; compgen -W "$options" -- "$word"))
    return
  fi
  COMPREPLY=($("\${COMP_WORDS[0]}" completion paths -- "$word" 2>/dev/null))
  [ "$places" = both ] && COMPREPLY+=($(compgen -f -- "$word"))
  type compopt >/dev/null 2>&1 && compopt -o filenames -o nospace
  return 0
}
complete -F _grove grove
`;
}

function zshScript(verbs: readonly VerbCompletion[]): string {
  const load = "autoload -U +X bashcompinit && bashcompinit";
  return `#compdef grove\n# Completion of grove for zsh, by way of bash's.\n${load}\n${bashScript(verbs)}`;
}

function fishScript(verbs: readonly VerbCompletion[]): string {
  const lines = ["# Completion of grove for fish.", "complete -c grove -f"];
  for (const { name, options, words, kind } of verbs) {
    lines.push(`complete -c grove -n __fish_use_subcommand -a ${name}`);
    const when = `-n '__fish_seen_subcommand_from ${name}'`;
    for (const option of options) {
      const flag = option.startsWith("--") ? `-l ${option.slice(2)}` : `-s ${option.slice(1)}`;
      lines.push(`complete -c grove ${when} ${flag}`);
    }
    if (words.length > 0) lines.push(`complete -c grove ${when} -a '${words.join(" ")}'`);
    if (kind !== "none") {
      lines.push(`complete -c grove ${when} -a '(grove completion paths -- (commandline -ct) 2>/dev/null)'`);
    }
    if (kind.includes("local")) lines.push(`complete -c grove ${when} -F`);
  }
  return `${lines.join("\n")}\n`;
}
