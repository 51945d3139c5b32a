// Parses typed places on the cluster: `docs/a.txt`, `/docs`, `alice@example.com:/docs`.
import { GroveError } from "#base/errors.ts";
import { canonicalName, canonicalUsername, joinPath, splitPath } from "#base/names.ts";

/** A place on the cluster (decision D13). */
export interface RemotePath {
  /** Username that owns the root; empty for one's own. */
  readonly root: string;
  /** Absolute inside the root, canonical, without a slash at the end ("/" itself excepted). */
  readonly path: string;
}

/** A typed path and the place that it means. */
export interface TypedPath extends RemotePath {
  /** True when it ended in a slash, or in `.` or `..`: only a folder can be meant. */
  readonly isFolder: boolean;
}

/** One's own root directory, the first current folder. */
export const HOME: RemotePath = { root: "", path: "/" };

// A colon before the first slash, after something that looks like an e-mail address.
const WITH_ROOT = /^([^/:@\s]+@[^/:@\s]+):(.*)$/s;

/**
 * Parses a typed path; a relative one starts at `from`, one behind `user:` at that user's root. Resolves `.`
 * and `..`, with `..` of the root being the root. Throws BAD_NAME and BAD_ARGUMENT (decision D13).
 */
export function parseRemotePath(typed: string, from: RemotePath): TypedPath {
  // A word that is empty is a variable without a value far more often than the current folder.
  if (typed === "") throw new GroveError("BAD_ARGUMENT", "the path is empty; '.' is the current folder");
  const match = WITH_ROOT.exec(typed);
  const root = match?.[1] === undefined ? from.root : canonicalUsername(match[1]);
  const text = match?.[2] ?? typed;
  const isRelative = match === null && !text.startsWith("/");
  const names = isRelative ? splitPath(from.path) : [];
  const words = text.split("/");
  for (const word of words) {
    if (word === "" || word === ".") continue;
    if (word === "..") names.pop();
    else names.push(canonicalName(word));
  }
  const path = joinPath(names);
  // Checks the length, which joining may have exceeded.
  splitPath(path);
  const last = words.at(-1);
  return { root, path, isFolder: last === "" || last === "." || last === ".." };
}

/** The path of something in a folder. */
export function childPath(folder: string, name: string): string {
  return folder === "/" ? `/${name}` : `${folder}/${name}`;
}

/** The folder that something is in; "/" for "/" itself. */
export function parentPath(path: string): string {
  const at = path.lastIndexOf("/");
  return at <= 0 ? "/" : path.slice(0, at);
}

/** The last name of a path; empty for "/". */
export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** A place in the form that people type. */
export function formatRemotePath(place: RemotePath): string {
  return place.root === "" ? place.path : `${place.root}:${place.path}`;
}
