// The answers of `grove init`: their names, and the file in which machines give them.
import { GroveError } from "#base/errors.ts";

/** The services that a machine may have, in the order in which they are started. */
export const ROLES = ["metaserver", "fileserver", "door", "console"] as const;

/** One of them. */
export type Role = (typeof ROLES)[number];

/** Every name of an answer, in the order in which they are asked and checked. */
export const KEYS = [
  "roles",
  "listen",
  "name",
  "id",
  "metaserver",
  "token",
  "provider_ca",
  "provider",
  "client_id",
  "reserve",
  "data",
  "store",
  "operator",
  "networks",
  "door_url",
  "door_proxy",
  "certificates",
  "password_hash",
  "metrics_token",
] as const;

/** One of them. */
export type Key = (typeof KEYS)[number];

/** Answers by name; a missing one has not been given. */
export type Answers = Readonly<Partial<Record<Key, string>>>;

/** An answer with its place in a file, for messages. */
export interface GivenAnswers {
  readonly answers: Answers;
  /** `FILE:LINE` of each. */
  readonly places: ReadonlyMap<Key, string>;
}

/** Longest file of answers, and longest line of one. */
const FILE_MAX_LENGTH = 262_144;

/** The roles of answers. */
export function rolesOf(answers: Answers): Role[] {
  const words = (answers.roles ?? "").split(" ");
  return ROLES.filter((role) => words.includes(role));
}

/** True for one of the names. */
function isKey(word: string): word is Key {
  return (KEYS as readonly string[]).includes(word);
}

/**
 * Parses lines of `name = value`; empty lines and those that begin with `#` say nothing. Throws BAD_ARGUMENT
 * that begins with `path:line` for any other line, an unknown name, and a name given twice.
 */
export function parseAnswers(text: string, path: string): GivenAnswers {
  if (text.length > FILE_MAX_LENGTH) throw new GroveError("BAD_ARGUMENT", `${path} is too long`);
  const answers: Partial<Record<Key, string>> = {};
  const places = new Map<Key, string>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const place = `${path}:${index + 1}`;
    if (/^\s*(?:#|$)/.test(line)) continue;
    const match = /^\s*(\w+)\s*=\s*(.*?)\s*$/.exec(line);
    // A line may hold a token, so it is never quoted.
    if (match === null) throw new GroveError("BAD_ARGUMENT", `${place}: a line is name = value`);
    const [, name = "", value = ""] = match;
    if (!isKey(name)) {
      throw new GroveError(
        "BAD_ARGUMENT",
        `${place}: there is no answer of that name; they are ${KEYS.join(", ")}`,
      );
    }
    const before = places.get(name);
    if (before !== undefined) {
      throw new GroveError("BAD_ARGUMENT", `${place}: ${name} is given at ${before} already`);
    }
    places.set(name, place);
    answers[name] = value;
  }
  return { answers, places };
}

/** Writes answers as such a file, under a line that says what it is. */
export function answersText(title: string, answers: Answers): string {
  const lines = KEYS.flatMap((key) => {
    const value = answers[key];
    return value === undefined || value === "" ? [] : [`${key} = ${value}`];
  });
  return `${[`# ${title}`, ...lines].join("\n")}\n`;
}
