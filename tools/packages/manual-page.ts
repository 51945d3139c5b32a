// The manual page grove(1), made of the program's own help.

/** Runs the program with some words and returns what it prints. */
export type Help = (...words: string[]) => Promise<string>;

/** Commands in the table of `grove --help`: two blanks, a name, its sentence. */
const COMMAND_ROW = /^ {2}([a-z][a-z-]*) {2,}\S/gm;

/** The page as roff, with a section for every command. */
export async function manualPage(help: Help, version: string): Promise<string> {
  const overview = await help("--help");
  const names = [...overview.matchAll(COMMAND_ROW)].map(([, name]) => name as string);
  if (names.length === 0) throw new Error("the help lists no commands");
  const sections: string[] = [];
  for (const name of names) sections.push(`.SS "grove ${name}"`, verbatim(await help(name, "--help")));
  return [
    `.TH GROVE 1 "" "Grove ${version}" "User Commands"`,
    ".SH NAME",
    "grove \\- a filesystem for many users, on machines of your own",
    ".SH SYNOPSIS",
    ".B grove",
    ".I COMMAND",
    "[options]",
    ".SH DESCRIPTION",
    verbatim(overview),
    ".SH COMMANDS",
    ...sections,
    ".SH SEE ALSO",
    "/usr/share/doc/grove/install.md, /usr/share/doc/grove/operating.md, /usr/share/doc/grove/reference.md",
    "",
  ].join("\n");
}

/** Text as it stands, without fill. */
function verbatim(text: string): string {
  const lines = text
    .trimEnd()
    .split("\n")
    .map((line) => line.replaceAll("\\", "\\e").replaceAll("-", "\\-").replaceAll("'", "\\(aq"))
    .map((line) => (/^[.']/.test(line) ? `\\&${line}` : line));
  return [".nf", ...lines, ".fi"].join("\n");
}
