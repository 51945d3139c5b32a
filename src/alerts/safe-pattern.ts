// Regular expressions that cost at most their length times that of the text, whoever wrote them: no backtracking (Thompson's way).
import { PATTERN_STEPS_MAX, SILENCE_VALUE_MAX_LENGTH } from "#base/limits.ts";

/** Decides whether a whole text matches. */
export type SafePattern = (text: string) => boolean;

/** A set of characters: ranges of code points, or all others. */
interface CharacterSet {
  readonly ranges: readonly (readonly [number, number])[];
  readonly isNegated: boolean;
}

type Part =
  | { readonly kind: "set"; readonly set: CharacterSet }
  | { readonly kind: "row"; readonly parts: readonly Part[] }
  | { readonly kind: "choice"; readonly parts: readonly Part[] }
  | { readonly kind: "repeat"; readonly part: Part; readonly min: number; readonly max: number };

/** One step of the compiled pattern; `to` and `or` are numbers of steps. */
type Step =
  | { readonly kind: "set"; readonly set: CharacterSet }
  | { readonly kind: "jump"; to: number }
  | { readonly kind: "split"; to: number; or: number }
  | { readonly kind: "end" };

/**
 * Compiles a pattern that must match the whole text, as Alertmanager's do: characters, `.`, `[a-z]`, `[^…]`, `\d \w \s` and their
 * opposites, groups, `|`, `* + ?`, `{n,m}`; a `^` at the start and a `$` at the end are allowed. Answers what is wrong with it instead
 * when it is something else, such as a look-ahead or a back-reference.
 */
export function compilePattern(source: string): SafePattern | { readonly problem: string } {
  if (source.length > SILENCE_VALUE_MAX_LENGTH) {
    return { problem: `a pattern has at most ${SILENCE_VALUE_MAX_LENGTH} characters` };
  }
  try {
    const steps: Step[] = [];
    emit(steps, new PatternReader(source).read());
    push(steps, { kind: "end" });
    return (text) => matches(steps, text);
  } catch (error) {
    if (error instanceof PatternProblem) return { problem: error.message };
    throw error;
  }
}

class PatternProblem extends Error {}

const ANY: CharacterSet = { ranges: [[0x0a, 0x0a]], isNegated: true };
const DIGITS: readonly (readonly [number, number])[] = [[0x30, 0x39]];
const WORD: readonly (readonly [number, number])[] = [
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
];
const SPACE: readonly (readonly [number, number])[] = [
  [0x09, 0x0d],
  [0x20, 0x20],
];
const CLASSES: Readonly<Record<string, CharacterSet>> = {
  d: { ranges: DIGITS, isNegated: false },
  D: { ranges: DIGITS, isNegated: true },
  w: { ranges: WORD, isNegated: false },
  W: { ranges: WORD, isNegated: true },
  s: { ranges: SPACE, isNegated: false },
  S: { ranges: SPACE, isNegated: true },
};
const REPEATS_MAX = 100;

/** Reads a pattern into its parts. */
class PatternReader {
  readonly #characters: readonly string[];
  #at = 0;

  constructor(source: string) {
    const characters = Array.from(source);
    if (characters[0] === "^") characters.shift();
    if (characters.at(-1) === "$" && characters.at(-2) !== "\\") characters.pop();
    this.#characters = characters;
  }

  read(): Part {
    const part = this.#choice();
    if (this.#at < this.#characters.length) throw new PatternProblem("a ) without its (");
    return part;
  }

  #choice(): Part {
    const parts = [this.#row()];
    while (this.#take("|")) parts.push(this.#row());
    return { kind: "choice", parts };
  }

  #row(): Part {
    const parts: Part[] = [];
    for (let next = this.#peek(); next !== undefined && next !== "|" && next !== ")"; next = this.#peek()) {
      parts.push(this.#repeated(this.#single()));
    }
    return { kind: "row", parts };
  }

  #single(): Part {
    const character = this.#next();
    if (character === "(") return this.#group();
    if (character === "[") return { kind: "set", set: this.#set() };
    if (character === ".") return { kind: "set", set: ANY };
    if (character === "\\") return { kind: "set", set: this.#escape() };
    if ("*+?{}])^$".includes(character)) {
      throw new PatternProblem(`${character} at a place where it means nothing; write \\${character}`);
    }
    return { kind: "set", set: only(character) };
  }

  #group(): Part {
    if (this.#take("?") && !this.#take(":")) {
      throw new PatternProblem("of the groups with (? only (?: is understood");
    }
    const part = this.#choice();
    if (!this.#take(")")) throw new PatternProblem("a ( without its )");
    return part;
  }

  #repeated(part: Part): Part {
    const bounds = this.#bounds();
    if (bounds === undefined) return part;
    // A lazy repetition matches the same texts.
    this.#take("?");
    return { kind: "repeat", part, min: bounds[0], max: bounds[1] };
  }

  #bounds(): readonly [number, number] | undefined {
    if (this.#take("*")) return [0, Number.POSITIVE_INFINITY];
    if (this.#take("+")) return [1, Number.POSITIVE_INFINITY];
    if (this.#take("?")) return [0, 1];
    if (!this.#take("{")) return undefined;
    let text = "";
    while (this.#peek() !== undefined && this.#peek() !== "}") text += this.#next();
    const found = /^(\d{1,3})(?:(,)(\d{1,3})?)?$/.exec(text);
    if (!this.#take("}") || found === null) throw new PatternProblem("a { that is no {n}, {n,} or {n,m}");
    const min = Number(found[1]);
    const max =
      found[3] !== undefined ? Number(found[3]) : found[2] === undefined ? min : Number.POSITIVE_INFINITY;
    if (min > REPEATS_MAX || (max !== Number.POSITIVE_INFINITY && max > REPEATS_MAX) || max < min) {
      throw new PatternProblem(`the numbers of {n,m} go from 0 to ${REPEATS_MAX}, the smaller first`);
    }
    return [min, max];
  }

  #set(): CharacterSet {
    const isNegated = this.#take("^");
    const ranges: (readonly [number, number])[] = [];
    for (let isFirst = true; isFirst || this.#peek() !== "]"; isFirst = false) {
      const low = this.#setMember();
      if (typeof low !== "number") {
        ranges.push(...low);
        continue;
      }
      let high = low;
      if (this.#peek() === "-" && this.#characters[this.#at + 1] !== "]") {
        this.#next();
        const member = this.#setMember();
        if (typeof member !== "number" || member < low)
          throw new PatternProblem("a range in [ ] that is none");
        high = member;
      }
      ranges.push([low, high]);
    }
    this.#next();
    return { ranges, isNegated };
  }

  #setMember(): number | readonly (readonly [number, number])[] {
    const character = this.#next();
    if (character !== "\\") return codeOf(character);
    const set = this.#escape();
    if (set.isNegated) throw new PatternProblem("\\D, \\W and \\S inside [ ] are not understood");
    const single = set.ranges.length === 1 ? set.ranges[0] : undefined;
    return single !== undefined && single[0] === single[1] ? single[0] : set.ranges;
  }

  #escape(): CharacterSet {
    const character = this.#next();
    const known = CLASSES[character];
    if (known !== undefined) return known;
    if (/[A-Za-z0-9]/.test(character)) throw new PatternProblem(`\\${character} is not understood`);
    return only(character);
  }

  #peek(): string | undefined {
    return this.#characters[this.#at];
  }

  #next(): string {
    const character = this.#characters[this.#at++];
    if (character === undefined) throw new PatternProblem("it ends too early");
    return character;
  }

  #take(character: string): boolean {
    if (this.#characters[this.#at] !== character) return false;
    this.#at++;
    return true;
  }
}

function only(character: string): CharacterSet {
  return { ranges: [[codeOf(character), codeOf(character)]], isNegated: false };
}

function codeOf(character: string): number {
  return character.codePointAt(0) ?? 0;
}

function push<S extends Step>(steps: Step[], step: S): S {
  if (steps.length >= PATTERN_STEPS_MAX) throw new PatternProblem("it repeats too much");
  steps.push(step);
  return step;
}

function emit(steps: Step[], part: Part): void {
  if (part.kind === "set") push(steps, part);
  else if (part.kind === "row") for (const each of part.parts) emit(steps, each);
  else if (part.kind === "choice") emitChoice(steps, part.parts);
  else emitRepeat(steps, part.part, part.min, part.max);
}

function emitChoice(steps: Step[], parts: readonly Part[]): void {
  const jumps: { to: number }[] = [];
  for (const [at, part] of parts.entries()) {
    if (at === parts.length - 1) {
      emit(steps, part);
      continue;
    }
    const split = push(steps, { kind: "split", to: steps.length + 1, or: 0 });
    emit(steps, part);
    jumps.push(push(steps, { kind: "jump", to: 0 }));
    split.or = steps.length;
  }
  for (const jump of jumps) jump.to = steps.length;
}

function emitRepeat(steps: Step[], part: Part, min: number, max: number): void {
  for (let count = 0; count < min; count++) emit(steps, part);
  if (max === Number.POSITIVE_INFINITY) {
    const start = steps.length;
    const split = push(steps, { kind: "split", to: start + 1, or: 0 });
    emit(steps, part);
    push(steps, { kind: "jump", to: start });
    split.or = steps.length;
    return;
  }
  const splits: { or: number }[] = [];
  for (let count = min; count < max; count++) {
    splits.push(push(steps, { kind: "split", to: steps.length + 1, or: 0 }));
    emit(steps, part);
  }
  for (const split of splits) split.or = steps.length;
}

/** All places at which the pattern may stand are carried along at once, each at most once per character. */
function matches(steps: readonly Step[], text: string): boolean {
  let places = follow(steps, [0]);
  for (const character of text) {
    const code = codeOf(character);
    const next: number[] = [];
    for (const place of places) {
      const step = steps[place];
      if (step?.kind === "set" && holds(step.set, code)) next.push(place + 1);
    }
    if (next.length === 0) return false;
    places = follow(steps, next);
  }
  return places.some((place) => steps[place]?.kind === "end");
}

function follow(steps: readonly Step[], starts: readonly number[]): number[] {
  const seen = new Set<number>();
  const open = [...starts];
  for (let place = open.pop(); place !== undefined; place = open.pop()) {
    if (seen.has(place)) continue;
    seen.add(place);
    const step = steps[place];
    if (step?.kind === "jump") open.push(step.to);
    else if (step?.kind === "split") open.push(step.to, step.or);
  }
  return [...seen];
}

function holds(set: CharacterSet, code: number): boolean {
  return set.ranges.some(([low, high]) => code >= low && code <= high) !== set.isNegated;
}
