// The content of one lane's folder as immutable values: tree, trash, shares, and the upload under way.
import type { Content } from "./content.ts";

/** An entry below a path: a file's content, or a folder. */
export type Entry = Content | "folder";

/** Entries by their paths below the lane's folder, without a leading slash. */
export type Tree = ReadonlyMap<string, Entry>;

/** An item of the trash. */
export interface TrashedItem {
  readonly trashId: string;
  readonly path: string;
  readonly entry: Entry;
  /** Its entries, by paths below the item. */
  readonly below: Tree;
}

/** A resumable upload that was begun and acknowledged. */
export interface BegunUpload {
  readonly uploadId: string;
  readonly path: string;
  readonly content: Content;
}

/** All that is known of a lane's folder. */
export interface LaneState {
  readonly tree: Tree;
  readonly trash: readonly TrashedItem[];
  /** Users by path. */
  readonly shares: ReadonlyMap<string, ReadonlySet<string>>;
  readonly upload: BegunUpload | undefined;
}

/** An empty folder. */
export const EMPTY_LANE: LaneState = { tree: new Map(), trash: [], shares: new Map(), upload: undefined };

/** True when a path is another or lies below it. */
export const isWithin = (path: string, top: string): boolean => path === top || path.startsWith(`${top}/`);

/** The path, moved from below one place to below another. */
const moved = (path: string, from: string, to: string): string => to + path.slice(from.length);

/** The state with one more entry, or with another in its place. */
export function withEntry(state: LaneState, path: string, entry: Entry): LaneState {
  return { ...state, tree: new Map(state.tree).set(path, entry) };
}

/** The state without a path and what is below it; shares there end. */
export function without(state: LaneState, top: string): LaneState {
  const keep = <Value>(from: ReadonlyMap<string, Value>): Map<string, Value> =>
    new Map([...from].filter(([path]) => !isWithin(path, top)));
  return { ...state, tree: keep(state.tree), shares: keep(state.shares) };
}

/** What is at a path and below it, by paths below the top; the top itself is the empty path. */
export function below(state: LaneState, top: string): Tree {
  const found = [...state.tree].filter(([path]) => isWithin(path, top));
  return new Map(found.map(([path, entry]) => [path.slice(top.length + 1), entry]));
}

/** The state with a subtree of `below` put at a path. */
export function withTree(state: LaneState, top: string, subtree: Tree): LaneState {
  const tree = new Map(state.tree);
  for (const [path, entry] of subtree) tree.set(path === "" ? top : `${top}/${path}`, entry);
  return { ...state, tree };
}

/** The state after a rename that replaces the target; shares move along, those of the replaced entry end. */
export function renamed(state: LaneState, from: string, to: string): LaneState {
  const rest = without(without(state, from), to);
  const shares = new Map(rest.shares);
  for (const [path, users] of state.shares)
    if (isWithin(path, from)) shares.set(moved(path, from, to), users);
  return { ...withTree(rest, to, below(state, from)), shares };
}

const sizeOf = (entry: Entry): number => (entry === "folder" ? 0 : entry.bytes.length);

/** Bytes in the tree, and in the trash. */
export function bytesOf(state: LaneState): { live: number; trash: number } {
  const sum = (entries: Iterable<Entry>): number =>
    [...entries].reduce((all, entry) => all + sizeOf(entry), 0);
  const trash = state.trash.map((item) => sizeOf(item.entry) + sum(item.below.values()));
  return { live: sum(state.tree.values()), trash: trash.reduce((all, bytes) => all + bytes, 0) };
}

/** One entry as a line; users sorted. */
export function entryLine(
  path: string,
  entry: { size: number; crc32: number } | "folder",
  users: readonly string[],
): string {
  const what = entry === "folder" ? "folder" : `${entry.size} bytes, CRC-32 ${entry.crc32}`;
  return `${path}: ${what}${users.length === 0 ? "" : `, shared with ${[...users].sort().join(" ")}`}`;
}

/** One item of the trash as a line. */
export function trashLine(path: string, size: number, inodes: number): string {
  return `trash of ${path}: ${size} bytes, ${inodes} inodes`;
}

/** The state as sorted lines, comparable with a server's answers. */
export function linesOf(state: LaneState): string[] {
  const lines: string[] = [];
  for (const [path, entry] of state.tree) {
    const users = new Set<string>();
    for (const [top, shared] of state.shares)
      if (isWithin(path, top)) for (const user of shared) users.add(user);
    const file = entry === "folder" ? entry : { size: entry.bytes.length, crc32: entry.crc32 };
    lines.push(entryLine(path, file, [...users]));
  }
  for (const { path, entry, below: rest } of state.trash) {
    const size = sizeOf(entry) + [...rest.values()].reduce((sum, each) => sum + sizeOf(each), 0);
    lines.push(trashLine(path, size, 1 + rest.size));
  }
  return lines.sort();
}

/** The first lines in which two states differ; undefined when they are the same. */
export function difference(expected: readonly string[], found: readonly string[]): string | undefined {
  const missing = expected.filter((line) => !found.includes(line));
  const extra = found.filter((line) => !expected.includes(line));
  if (missing.length === 0 && extra.length === 0 && expected.length === found.length) return undefined;
  return `expected and not found [${missing.slice(0, 3).join("; ")}], found and not expected [${extra.slice(0, 3).join("; ")}]`;
}
