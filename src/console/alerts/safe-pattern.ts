// Regular expressions that cost at most their length times that of the text: RE2's, which never backtrack.
import { RE2JS, RE2JSException } from "re2js";
import { SILENCE_VALUE_MAX_LENGTH } from "#base/limits.ts";

/**
 * Steps that a pattern of a silence may compile to; matching costs at most that times the length of the text.
 */
const PATTERN_STEPS_MAX = 500;

/** Decides whether a whole text matches. */
export type SafePattern = (text: string) => boolean;

/** RE2 makes up to four steps of one counted here, such as a capturing group. */
const PROGRAM_STEPS_MAX: number = 4 * PATTERN_STEPS_MAX;

/**
 * The counted tokens: an escape, a set, a number of repetitions, a non-capturing group, any other character.
 */
const TOKEN = /\\x\{[\dA-Fa-f]+\}|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\{\d+(?:,\d*)?\}|\(\?:|./gsu;

/**
 * Compiles a pattern in RE2's syntax that must match the whole text, like Alertmanager's. Returns the error
 * instead for an invalid one, also for a look-ahead or a back-reference, which RE2 lacks.
 */
export function compilePattern(source: string): SafePattern | { readonly problem: string } {
  if (source.length > SILENCE_VALUE_MAX_LENGTH) {
    return { problem: `a pattern has at most ${SILENCE_VALUE_MAX_LENGTH} characters` };
  }
  const tooMuch = { problem: "it repeats too much" };
  // Checked before it is compiled: RE2 would first make hundreds of thousands of steps of 256 characters.
  if (stepsOf(source) > PATTERN_STEPS_MAX) return tooMuch;
  try {
    const pattern = RE2JS.compile(source);
    return pattern.programSize() > PROGRAM_STEPS_MAX ? tooMuch : (text) => pattern.testExact(text);
  } catch (error) {
    if (error instanceof RE2JSException) return { problem: error.message };
    throw error;
  }
}

/**
 * The approximate number of a pattern's steps with all repetitions. Quoted text could hide a group's end, so
 * it counts as too much.
 */
function stepsOf(source: string): number {
  const groups: number[] = [];
  let total = 0;
  let last = 0;
  for (const [token] of source.matchAll(TOKEN)) {
    if (token === "\\Q") return Number.POSITIVE_INFINITY;
    const times = /^\{(\d+)(?:,(\d*))?\}$/.exec(token);
    if (times !== null) {
      const most = Math.max(1, Number(times[1]), Number(times[2] ?? 0));
      total += last * (most - 1);
      last *= most;
      continue;
    }
    if (token === "(" || token === "(?:") groups.push(total);
    if (token !== "(?:" && token !== ")") total++;
    last = token === ")" ? total - (groups.pop() ?? 0) : 1;
  }
  return total;
}
