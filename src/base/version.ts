// The version of this program from package.json.
import manifest from "#package.json" with { type: "json" };

/** Version of Grove, for `grove --version`, client_version and server_version (decision D18). */
export const VERSION: string = manifest.version;

/**
 * True for two versions that work together: the same, or one minor version apart (decision D18). Also true
 * when either is missing or unreadable.
 */
export function worksWith(one: string, other: string): boolean {
  const parse = (version: string): readonly number[] | undefined => {
    const match = /^(\d{1,6})\.(\d{1,6})\./.exec(version);
    return match === null ? undefined : [Number(match[1]), Number(match[2])];
  };
  const [a, b] = [parse(one), parse(other)];
  if (a === undefined || b === undefined) return true;
  return a[0] === b[0] && Math.abs((a[1] ?? 0) - (b[1] ?? 0)) <= 1;
}
