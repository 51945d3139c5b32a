// `grove init`: sets a machine up by questions and answers: settings, authority, certificates, units.
import { readFile } from "node:fs/promises";
import { Command } from "commander";
import { processTerminal, say as sayTo, type Terminal } from "#client/terminal/terminal.ts";
import { type Answers, KEYS, parseAnswers } from "./answers.ts";
import type { Consent } from "./apply.ts";
import { askPerson, differences, type Gathering, Person, takeAnswers } from "./dialogue.ts";
import { inviteCommand } from "./invite.ts";
import { openMachine } from "./machine.ts";
import { nextSteps } from "./next-steps.ts";
import { readRecord } from "./record.ts";
import { setUp } from "./set-up.ts";

interface InitFlags {
  readonly answers?: string;
  readonly replace: boolean;
  readonly below?: string;
}

const HELP = `
Asks which services this machine has and what they need, and checks each answer at once. Writes the variables in /etc/grove,
the cluster's authority and certificates, and which units start with the machine. Run again, it shows what is there and
changes what you answer otherwise. It starts nothing: it ends with what to type next.

A file of answers has lines of name = value; '#' begins a comment. What is missing is as before, else the usual:
  ${KEYS.slice(0, 10).join(" ")}
  ${KEYS.slice(10).join(" ")}

Examples:
  grove init                             asks
  grove init -answers n1.answers         for machines; an error names the line
  grove init invite n2 n2.example.net    the answers for another machine, with a join token
  grove init -below ./trial              writes below that folder alone, not as root: to look, or to try`;

/** The parser of `grove init`. */
export function command(terminal: Terminal = processTerminal()): Command {
  return new Command("init")
    .summary("Set this machine up: questions, checks, what to type next")
    .description("Set this machine up as a part of a cluster: the first one, or one more.")
    .option("--answers <file>", "take the answers from a file, and ask nobody")
    .option(
      "--replace",
      "with -answers: replace files that were changed by hand; they are kept beside",
      false,
    )
    .option("--below <folder>", "write all of it below that folder, and leave the machine alone")
    .addHelpText("after", HELP)
    .addCommand(inviteCommand(terminal))
    .action((flags: InitFlags) => init(flags, terminal));
}

async function init(flags: InitFlags, terminal: Terminal): Promise<void> {
  const machine = openMachine(flags.below);
  const record = await readRecord(machine.settings);
  const before = record?.answers ?? {};
  const say = (line: string): void => sayTo(terminal, line);
  if (record !== undefined) tellWhatIsThere(before, say);
  const gathering: Gathering = { machine, before, say };
  const person = flags.answers === undefined ? new Person(terminal) : undefined;
  try {
    const answers = await gather(gathering, flags.answers, person);
    const changes = record === undefined ? [] : differences(before, answers);
    for (const change of changes) say(`change: ${change}`);
    if (person !== undefined && !(await person.agrees("Set this machine up so?", true))) {
      say("Nothing was written.");
      return;
    }
    const done = await setUp({ machine, answers, record, consent: consentOf(flags, person), say });
    if (done.isNothing) {
      say("All is there as the answers say; nothing was changed.");
      return;
    }
    for (const line of nextSteps(answers, machine, { below: flags.below, isRestart: record !== undefined }))
      say(line);
  } finally {
    person?.close();
  }
}

async function gather(
  gathering: Gathering,
  path: string | undefined,
  person: Person | undefined,
): Promise<Answers> {
  if (person !== undefined) return askPerson(gathering, person);
  return takeAnswers(gathering, parseAnswers(await readFile(path ?? "", "utf8"), path ?? ""), path ?? "");
}

/** Answers that were changed are consent for what an earlier run wrote; nothing but a yes is for the rest. */
function consentOf({ replace }: InitFlags, person: Person | undefined): Consent {
  return async (path, why) => {
    if (person !== undefined) return person.agrees(`Replace ${path} (${why})? It is kept beside.`, false);
    return replace || why.startsWith("as ");
  };
}

function tellWhatIsThere(before: Answers, say: (line: string) => void): void {
  const shown = (["roles", "id", "name", "metaserver", "provider", "data", "store"] as const).flatMap(
    (key) => {
      const value = before[key];
      return value === undefined || value === "" ? [] : [`${key} ${value}`];
    },
  );
  say(`This machine is set up: ${shown.join("; ")}.`);
}
