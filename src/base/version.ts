// The version of this program from package.json.
import manifest from "#package.json" with { type: "json" };
import { GroveError } from "./errors.ts";

/** Version of Grove, for `grove --version`, client_version and server_version (decision D18). */
export const VERSION: string = manifest.version;

/** A program with its version, as a refusal names it: "the client", "this FileServer". */
export interface VersionedProgram {
  readonly name: string;
  /** Any text; it may come from another machine. */
  readonly version: string;
}

/**
 * Why two programs do not work together, and which of them to upgrade to what; undefined where they do
 * (decision D18). The newer one never has to go back.
 */
export function versionProblem(one: VersionedProgram, other: VersionedProgram): string | undefined {
  const [a, b] = [parsed(one.version), parsed(other.version)];
  if (a === undefined || b === undefined || worksWith(one.version, other.version)) return undefined;
  const isOlder = a.major === b.major ? a.minor < b.minor : a.major < b.major;
  const [older, newer, latest] = isOlder ? [one, other, b] : [other, one, a];
  const sameMajor = a.major === b.major;
  const least = `${latest.major}.${sameMajor ? latest.minor - 1 : latest.minor}`;
  return (
    `${newer.name} has version ${shown(newer.version)} and ${older.name} ${shown(older.version)}, ` +
    `and versions work together that are at most one minor version apart: upgrade ${older.name} to ${least} or newer`
  );
}

/** Throws VERSION_MISMATCH when a peer and this program, called `own`, do not work together (decision D18). */
export function requireNeighbour(peer: VersionedProgram, own: string): void {
  const problem = versionProblem(peer, { name: own, version: VERSION });
  if (problem !== undefined) throw new GroveError("VERSION_MISMATCH", problem);
}

/** A version of another machine, short and without what moves a cursor. */
function shown(version: string): string {
  return version.replaceAll(/[^\w.+-]/g, "").slice(0, 40);
}

function parsed(version: string): { readonly major: number; readonly minor: number } | undefined {
  const match = /^(\d{1,6})\.(\d{1,6})\./.exec(version);
  return match === null ? undefined : { major: Number(match[1]), minor: Number(match[2]) };
}

/**
 * True for two versions that work together: the same, or one minor version apart (decision D18). Also true
 * when either is missing or unreadable.
 */
export function worksWith(one: string, other: string): boolean {
  const [a, b] = [parsed(one), parsed(other)];
  if (a === undefined || b === undefined) return true;
  return a.major === b.major && Math.abs(a.minor - b.minor) <= 1;
}
