// Where a WebDAV path lies: in one's own root, in a root that somebody shares, or in a folder of the door alone.
import { joinPath, splitPath } from "#base/names.ts";
import type { RemotePath } from "#client/connection/remote-path.ts";
import type { SharedRoot } from "./person.ts";

/** The folder of what others share; numbered where the person has one of that name. */
const SHARED_FOLDER = "Shared with me";

/** The folder of the person's groups, by name; numbered in the same way. */
const PROJECTS_FOLDER = "Projects";

/** The folders of the door alone at the top, as they are called where nothing of the person's has the name. */
export const WAY_FOLDERS: readonly string[] = [PROJECTS_FOLDER, SHARED_FOLDER];

/** What lies in one of these folders. */
export function rootsIn(folder: string, roots: readonly SharedRoot[]): readonly SharedRoot[] {
  return roots.filter(({ project }) => (project === undefined) === (folder === SHARED_FOLDER));
}

/** A place in somebody's root. */
export interface RealPlace extends RemotePath {
  readonly kind: "real";
  /** Names before those of the place inside the root. */
  readonly prefix: readonly string[];
}

/** Where a path leads. */
export type Place =
  | RealPlace
  /** A folder that exists for the way alone, with the names in it. */
  | { readonly kind: "virtual"; readonly names: readonly string[] }
  | { readonly kind: "nothing" };

/** The place of names in one's own root. */
export function ownPlace(names: readonly string[]): RealPlace {
  return { kind: "real", root: "", path: joinPath(names), prefix: [] };
}

/**
 * The place of a path below the folder of shares or of groups: the owner's username or the group's name, then
 * names in that root.
 */
export function sharedPlace(path: readonly string[], shares: readonly SharedRoot[]): Place {
  const [folder = "", entry, ...names] = path;
  if (entry === undefined) return virtual(shares.map(entryOf));
  const found = shares.filter((share) => entryOf(share) === entry);
  const shared = found.map((share) => splitPath(share.path));
  const [first] = found;
  if (first !== undefined && shared.some((top) => isWithin(names, top))) {
    return { kind: "real", root: first.owner, path: joinPath(names), prefix: [folder, entry] };
  }
  return virtual(shared.filter((top) => isWithin(top, names)).map((top) => top[names.length] ?? ""));
}

function entryOf({ owner, project }: SharedRoot): string {
  return project ?? owner;
}

function virtual(names: readonly string[]): Place {
  return names.length === 0
    ? { kind: "nothing" }
    : { kind: "virtual", names: [...new Set(names)].toSorted() };
}

function isWithin(names: readonly string[], above: readonly string[]): boolean {
  return above.length <= names.length && above.every((name, index) => names[index] === name);
}
