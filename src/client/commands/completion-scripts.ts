// Makes the completion scripts from the commands and their options.
import type { Words } from "./verbs.ts";

/** Shells with a completion script. */
export const SHELLS = ["bash", "zsh", "fish"] as const;

/** One of them. */
export type ShellName = (typeof SHELLS)[number];

/** The facts about a command that a script needs. */
export interface CommandCompletion {
  /** Its name; for a subcommand both names, with a blank between. */
  readonly name: string;
  /** One sentence, for shells that show it beside the name. */
  readonly summary: string;
  readonly options: readonly string[];
  /** Fixed words that may follow: subcommands, choices. */
  readonly words: readonly string[];
  readonly kind: Words;
}

/**
 * The script of a shell. Names, options and words consist of letters, digits and hyphens, so only summaries
 * need quoting.
 */
export function completionScript(shell: ShellName, commands: readonly CommandCompletion[]): string {
  const makers: Readonly<Record<ShellName, (commands: readonly CommandCompletion[]) => string>> = {
    bash: bashScript,
    zsh: zshScript,
    fish: fishScript,
  };
  return makers[shell](commands);
}

const PLACES: Readonly<Record<Words, string>> = {
  remote: "remote",
  "local then remote": "both",
  "remote then local": "both",
  local: "local",
  none: "none",
};

const isSubcommand = ({ name }: CommandCompletion): boolean => name.includes(" ");

/** Subcommands first, since the first matching pattern counts. */
function inOrder(commands: readonly CommandCompletion[]): CommandCompletion[] {
  return [...commands.filter(isSubcommand), ...commands.filter((command) => !isSubcommand(command))];
}

function bashCases(commands: readonly CommandCompletion[]): string {
  return inOrder(commands)
    .map(({ name, options, words, kind }) => {
      return `    "${name} "*) options="${options.join(" ")}" words="${words.join(" ")}" places=${PLACES[kind]} ;;`;
    })
    .join("\n");
}

function bashScript(commands: readonly CommandCompletion[]): string {
  const names = commands.filter((command) => !isSubcommand(command)).map(({ name }) => name);
  return `# Completion of grove for bash.
_grove() {
  local word=\${COMP_WORDS[COMP_CWORD]} options= words= places=none cut=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ] || { [ "$COMP_CWORD" -eq 2 ] && [ "\${COMP_WORDS[1]}" = help ]; }; then
    COMPREPLY=($(compgen -W "${names.join(" ")} help --help --version" -- "$word"))
    return
  fi
  case "\${COMP_WORDS[1]} \${COMP_WORDS[2]} " in
${bashCases(commands)}
  esac
  case $word in
    -*)
      # One dash will do, and underscores instead of hyphens.
      COMPREPLY=($(compgen -W "$options" -- "$word"))
      [ "\${#COMPREPLY[@]}" -eq 0 ] && COMPREPLY=($(compgen -W "$options" -- "-\${word//_/-}"))
      return ;;
  esac
  [ -n "$words" ] && COMPREPLY=($(compgen -W "$words" -- "$word"))
  # A path holds characters at which bash ends a word (alice@example.com:/docs): take all of it, and give back what follows them.
  if [ -n "$BASH_VERSION" ] && [[ \${COMP_LINE:0:COMP_POINT} =~ ([^[:space:]\\\\]|\\\\.)*$ ]]; then
    word=\${BASH_REMATCH[0]//\\\\/}
    word=\${word#[\\"\\']}
    cut=\${word%"\${word##*[:=@]}"}
  fi
  local IFS=$'\\n'
  case $places in
    remote|both) COMPREPLY+=($("\${COMP_WORDS[0]}" completion paths -- "$word" 2>/dev/null)) ;;
  esac
  case $places in
    local|both) COMPREPLY+=($(compgen -f -- "$word")) ;;
  esac
  [ -n "$cut" ] && COMPREPLY=("\${COMPREPLY[@]#"$cut"}")
  if [ "$places" != none ] && type compopt >/dev/null 2>&1; then
    compopt -o filenames 2>/dev/null
    case "\${COMPREPLY[*]}" in */) compopt -o nospace 2>/dev/null ;; esac
  fi
  return 0
}
complete -F _grove grove
`;
}

function zshScript(commands: readonly CommandCompletion[]): string {
  const names = commands
    .filter((command) => !isSubcommand(command))
    .map(({ name, summary }) => `    ${quoted(`${name}:${summary}`)}`);
  const cases = inOrder(commands).map(
    ({ name, options, words, kind }) =>
      `    "${name} "*) options=(${options.join(" ")}) fixed=(${words.join(" ")}) places=${PLACES[kind]} ;;`,
  );
  return `#compdef grove
# Completion of grove for zsh.
_grove() {
  local -a names options fixed found
  local places=none
  names=(
${names.join("\n")}
  )
  if [[ $CURRENT == 2 || ( $CURRENT == 3 && $words[2] == help ) ]]; then
    _describe -t commands command names
    return
  fi
  case "$words[2] $words[3] " in
${cases.join("\n")}
  esac
  if [[ $PREFIX == -* ]]; then
    compadd -- $options
    return
  fi
  (( $#fixed )) && compadd -- $fixed
  if [[ $places == (remote|both) ]]; then
    found=(\${(f)"$($words[1] completion paths -- \${(Q)PREFIX} 2>/dev/null)"})
    # A folder may go on; after a file comes the next word.
    compadd -S '' -- \${(M)found:#*/}
    compadd -- \${found:#*/}
  fi
  [[ $places == (local|both) ]] && _files
  return 0
}
if [[ $funcstack[1] == _grove ]]; then _grove "$@"; else compdef _grove grove; fi
`;
}

function fishScript(commands: readonly CommandCompletion[]): string {
  const lines = [
    "# Completion of grove for fish.",
    "complete -c grove -f",
    ...commands
      .filter((command) => !isSubcommand(command))
      .map(
        ({ name, summary }) => `complete -c grove -n __fish_use_subcommand -a ${name} -d ${quoted(summary)}`,
      ),
  ];
  for (const { name, options, words, kind } of commands) {
    const [first = "", second] = name.split(" ");
    const seen = [first, ...(second === undefined ? [] : [second])].map(
      (word) => `__fish_seen_subcommand_from ${word}`,
    );
    const when = `-n '${seen.join("; and ")}'`;
    for (const option of options) {
      const flag = option.startsWith("--") ? `-l ${option.slice(2)}` : `-s ${option.slice(1)}`;
      lines.push(`complete -c grove ${when} ${flag}`);
    }
    if (words.length > 0) lines.push(`complete -c grove ${when} -a '${words.join(" ")}'`);
    if (PLACES[kind] === "remote" || PLACES[kind] === "both") {
      lines.push(`complete -c grove ${when} -a '(grove completion paths -- (commandline -ct) 2>/dev/null)'`);
    }
    if (PLACES[kind] === "local" || PLACES[kind] === "both") lines.push(`complete -c grove ${when} -F`);
  }
  return `${lines.join("\n")}\n`;
}

/** Our own text for zsh and fish, without backslashes and line ends. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "’")}'`;
}
