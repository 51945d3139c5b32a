// Gathers answers: from a person, question by question, or from a file, with the line of what is wrong.
import { createInterface } from "node:readline";
import { GroveError } from "#base/errors.ts";
import { errorText } from "#base/log.ts";
import type { Terminal } from "#client/terminal/terminal.ts";
import { type Answers, type GivenAnswers, type Key, rolesOf } from "./answers.ts";
import type { Machine } from "./machine.ts";
import { type CheckContext, QUESTIONS, type Question } from "./questions.ts";

/** Answers of the run before, and where the questions go. */
export interface Gathering {
  readonly machine: Machine;
  readonly before: Answers;
  /** Prints a line for the person. */
  readonly say: (line: string) => void;
}

/** Answers that every check has passed. */
export type Gathered = Answers;

/** Reads answers of a person line by line. */
export class Person {
  readonly #screen: Terminal["error"];
  readonly #lines: AsyncIterator<string>;
  readonly #close: () => void;

  constructor({ input, error }: Pick<Terminal, "input" | "error">) {
    const reader = createInterface({ input, output: error });
    this.#screen = error;
    this.#lines = reader[Symbol.asyncIterator]();
    this.#close = () => reader.close();
  }

  /** Asks one question. Throws BAD_ARGUMENT at the end of the input. */
  async ask(question: string): Promise<string> {
    this.#screen.write(question);
    const { value, done } = await this.#lines.next();
    if (done !== true) return value.trim();
    throw new GroveError(
      "BAD_ARGUMENT",
      "the input ended before the last answer, and nothing was written; machines give -answers FILE",
    );
  }

  /** True for yes; Enter gives the proposal. */
  async agrees(question: string, proposal: boolean): Promise<boolean> {
    const answer = await this.ask(`${question} [${proposal ? "Y/n" : "y/N"}] `);
    return answer === "" ? proposal : /^y(?:es)?$/i.test(answer);
  }

  close(): void {
    this.#close();
  }
}

/** Takes a file's answers, those of the run before, and proposals, in this order; asks nobody. */
export async function takeAnswers(
  gathering: Gathering,
  { answers: given, places }: GivenAnswers,
  path: string,
): Promise<Gathered> {
  const { machine, before, say } = gathering;
  const answers: Partial<Record<Key, string>> = {};
  for (const question of QUESTIONS) {
    const { key } = question;
    const context: CheckContext = { machine, answers, before };
    const place = places.get(key) ?? path;
    if (!question.applies(answers)) {
      // An invitation carries more than some roles need.
      continue;
    }
    const value = given[key] ?? before[key] ?? (await question.proposal(context));
    if (value === undefined) {
      throw new GroveError("BAD_ARGUMENT", `${path}: ${key} is missing. ${question.ask ?? ""}`.trimEnd());
    }
    try {
      answers[key] = await checked(question, value, context, say);
    } catch (error) {
      throw new GroveError("BAD_ARGUMENT", `${place}: ${key}: ${errorText(error)}`, { cause: error });
    }
  }
  return answers;
}

/** Asks a person; an answer that fails its check is asked for again. */
export async function askPerson(gathering: Gathering, person: Pick<Person, "ask">): Promise<Gathered> {
  const { machine, before, say } = gathering;
  const answers: Partial<Record<Key, string>> = {};
  for (const question of QUESTIONS) {
    if (!question.applies(answers)) continue;
    const context: CheckContext = { machine, answers, before };
    const proposal = before[question.key] ?? (await proposalOf(question, context));
    if (question.ask === undefined) {
      answers[question.key] = await checked(question, proposal ?? "", context, say);
      continue;
    }
    const hint = proposal === undefined || proposal === "" ? "" : ` [${proposal}]`;
    for (;;) {
      const typed = await person.ask(`${question.ask}${hint}\n> `);
      try {
        answers[question.key] = await checked(
          question,
          typed === "" ? (proposal ?? "") : typed,
          context,
          say,
        );
        break;
      } catch (error) {
        say(`  no: ${errorText(error)}`);
      }
    }
  }
  return answers;
}

/** A proposal that cannot be worked out is none. */
async function proposalOf(question: Question, context: CheckContext): Promise<string | undefined> {
  try {
    return await question.proposal(context);
  } catch {
    return undefined;
  }
}

async function checked(
  question: Question,
  given: string,
  context: CheckContext,
  say: (line: string) => void,
): Promise<string> {
  const { value, remarks = [] } = await question.check(given, context);
  for (const remark of remarks) say(`  ${question.key}: ${remark}`);
  return value;
}

/** The answers that differ, as `name: before -> now`; secrets by their name alone. */
export function differences(before: Answers, now: Answers): string[] {
  const isSecret = (key: Key): boolean =>
    key === "token" || key === "password_hash" || key === "metrics_token" || key === "provider_ca";
  return QUESTIONS.flatMap(({ key }) => {
    const [old = "", value = ""] = [before[key], now[key]];
    if (old === value || key === "token") return [];
    return [isSecret(key) ? key : `${key}: ${old === "" ? "(nothing)" : old} -> ${value}`];
  });
}

/** Roles that the run before had and this one has not. */
export function droppedRoles(before: Answers, now: Answers): ReturnType<typeof rolesOf> {
  const kept = rolesOf(now);
  return rolesOf(before).filter((role) => !kept.includes(role));
}
