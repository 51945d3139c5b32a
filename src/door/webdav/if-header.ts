// The If header (RFC 4918, section 10.4): read in linear time, then judged against the state of resources.
import { GroveError } from "#base/errors.ts";
import { requireEncoded } from "./href.ts";

/** Bytes of an If header. */
const IF_MAX_BYTES = 8192;

/** Resources of which an If header speaks: each is looked at. */
export const IF_RESOURCES_MAX = 16;

/** Conditions that all have to hold; a leading "Not" turns one round. */
export interface IfCondition {
  readonly isNegated: boolean;
  /** A state token or an entity tag. */
  readonly kind: "token" | "etag";
  /** The token, or the tag without quotes and without "W/". */
  readonly value: string;
}

/** A list of conditions and the resource that it speaks of; undefined for that of the request. */
export interface IfList {
  readonly resource: string | undefined;
  readonly conditions: readonly IfCondition[];
}

/** State of one resource, as conditions see it. */
export interface IfState {
  readonly etag: string | undefined;
  readonly tokens: readonly string[];
}

/** The lists of an If header. Throws BAD_ARGUMENT for one that is not as the RFC has it, or too long. */
export function readIf(header: string): IfList[] {
  if (header.length > IF_MAX_BYTES) throw bad(`has more than ${IF_MAX_BYTES} bytes`);
  const reader = new Reader(header);
  const lists: IfList[] = [];
  let resource: string | undefined;
  let isTagged: boolean | undefined;
  for (reader.skipSpace(); !reader.isAtEnd; reader.skipSpace()) {
    if (reader.next === "<") {
      if (isTagged === false) throw bad("mixes lists with and without a resource");
      isTagged = true;
      resource = reader.until("<", ">");
      requireEncoded(resource, "an address in the If header");
      reader.skipSpace();
      lists.push({ resource, conditions: readConditions(reader) });
    } else {
      isTagged ??= false;
      lists.push({ resource, conditions: readConditions(reader) });
    }
  }
  if (lists.length === 0) throw bad("is empty");
  if (new Set(lists.map((list) => list.resource)).size > IF_RESOURCES_MAX) {
    throw bad(`speaks of more than ${IF_RESOURCES_MAX} resources`);
  }
  return lists;
}

/** Every state token in the lists, each once: what the request submits (RFC 4918, section 10.4.1). */
export function submittedTokens(lists: readonly IfList[]): string[] {
  const tokens = lists.flatMap(({ conditions }) =>
    conditions.filter(({ kind }) => kind === "token").map(({ value }) => value),
  );
  return [...new Set(tokens)];
}

/** True where at least one list holds, each for its own resource. */
export async function ifHolds(
  lists: readonly IfList[],
  stateOf: (resource: string | undefined) => Promise<IfState>,
): Promise<boolean> {
  const known = new Map<string | undefined, IfState>();
  for (const { resource, conditions } of lists) {
    const state = known.get(resource) ?? (await stateOf(resource));
    known.set(resource, state);
    if (conditions.every((condition) => matches(condition, state) !== condition.isNegated)) return true;
  }
  return false;
}

function matches({ kind, value }: IfCondition, state: IfState): boolean {
  return kind === "token" ? state.tokens.includes(value) : state.etag === value;
}

function readConditions(reader: Reader): IfCondition[] {
  reader.take("(");
  const conditions: IfCondition[] = [];
  for (reader.skipSpace(); reader.next !== ")"; reader.skipSpace()) {
    const isNegated = reader.takeWord("not");
    if (isNegated) reader.skipSpace();
    if (reader.next === "<") {
      conditions.push({ isNegated, kind: "token", value: reader.until("<", ">") });
    } else if (reader.next === "[") {
      conditions.push({ isNegated, kind: "etag", value: readTag(reader) });
    } else {
      throw bad(`cannot be read at character ${reader.place + 1}`);
    }
  }
  reader.take(")");
  if (conditions.length === 0) throw bad("has an empty list");
  return conditions;
}

function readTag(reader: Reader): string {
  reader.take("[");
  reader.takeWord("W/");
  const value = reader.until('"', '"');
  reader.take("]");
  return value;
}

class Reader {
  readonly #text: string;
  place = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isAtEnd(): boolean {
    return this.place >= this.#text.length;
  }

  get next(): string | undefined {
    return this.#text[this.place];
  }

  skipSpace(): void {
    while (this.next === " " || this.next === "\t") this.place++;
  }

  take(letter: string): void {
    if (this.next !== letter) throw bad(`lacks "${letter}" at character ${this.place + 1}`);
    this.place++;
  }

  /** Takes a word where it stands, in capitals or not. */
  takeWord(word: string): boolean {
    const found = this.#text.slice(this.place, this.place + word.length).toLowerCase() === word.toLowerCase();
    if (found) this.place += word.length;
    return found;
  }

  /** What lies between two marks, of which the first stands here. */
  until(first: string, last: string): string {
    this.take(first);
    const end = this.#text.indexOf(last, this.place);
    if (end === -1) throw bad(`lacks "${last}"`);
    const value = this.#text.slice(this.place, end);
    this.place = end + 1;
    return value;
  }
}

function bad(what: string): GroveError {
  return new GroveError("BAD_ARGUMENT", `the If header ${what}`);
}
