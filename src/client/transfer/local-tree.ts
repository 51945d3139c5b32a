// Walks a local folder for an upload: folders first, symbolic links by the rule of decision D13.
import { lstatSync, readdirSync, realpathSync, type Stats } from "node:fs";
import { join, sep } from "node:path";
import { nameProblem } from "#base/names.ts";
import { childPath } from "#client/connection/remote-path.ts";
import { localFailure } from "#client/terminal/client-error.ts";
import { FOLDER_DEPTH_MAX, LINKED_FOLDERS_MAX } from "#client/terminal/limits.ts";
import { toldTimeMs } from "./local-source.ts";

/** A folder to be made. */
export interface FolderEntry {
  readonly kind: "folder";
  readonly localPath: string;
  /** Path below the tree's top as it will be on the server, "/" for the top itself. */
  readonly place: string;
}

/** A file to be uploaded. */
export interface FileEntry {
  readonly kind: "file";
  /** The file itself: for a link its target. */
  readonly localPath: string;
  readonly place: string;
  /** Place of the folder that it is in. */
  readonly folder: string;
  readonly sizeBytes: number;
  /** The time on the wire: whole milliseconds, never 0. */
  readonly mtimeMs: number;
  readonly ctimeMs: number;
}

/** Something that cannot be uploaded, and why. */
export interface SkippedEntry {
  readonly kind: "skipped";
  readonly localPath: string;
  readonly why: string;
  /** Its place on the server, also of an unreadable folder. Undefined for a name that the server refuses. */
  readonly place?: string;
}

/** One result of the walk. */
export type LocalEntry = FolderEntry | FileEntry | SkippedEntry;

/** Longest time for which the walk keeps the event loop, so that transfers continue. */
const SLICE_MS = 5;

/** A folder that the walk is in, with the real paths of all folders above it. */
interface Visit {
  readonly localPath: string;
  readonly place: string;
  readonly realPath: string;
  readonly above: Visit | undefined;
  readonly depth: number;
}

/**
 * Folders of one parent that wait to be walked, the first of them last. Trees may have very many, so that each is
 * its name alone; one behind a link is elsewhere.
 */
interface WaitingFolders {
  readonly parent: Visit;
  readonly folders: (string | Visit)[];
}

/**
 * Walks a tree. A link to a target inside the tree counts as that target. Skips links that lead outside, to
 * nothing or to a folder above, special files, and names that the server would refuse.
 */
export async function* walkLocalTree(top: string): AsyncGenerator<LocalEntry, void, undefined> {
  yield* new LocalWalk(top).entries();
}

class LocalWalk {
  readonly #top: string;
  readonly #realTop: string;
  #linkedFolders = 0;
  #sliceStartedMs = performance.now();

  constructor(top: string) {
    this.#top = top;
    try {
      this.#realTop = realpathSync(top);
    } catch (error) {
      throw localFailure(error, top);
    }
  }

  async *entries(): AsyncGenerator<LocalEntry, void, undefined> {
    // A stack: what is below a folder comes before what is beside it.
    const waiting: WaitingFolders[] = [];
    const place = { localPath: this.#top, place: "/", realPath: this.#realTop };
    let visit: Visit | undefined = { ...place, above: undefined, depth: 0 };
    for (; visit !== undefined; visit = next(waiting)) {
      yield { kind: "folder", localPath: visit.localPath, place: visit.place };
      const seen = new Map<string, string>();
      const folders: (string | Visit)[] = [];
      for (const name of this.#names(visit)) {
        if (performance.now() - this.#sliceStartedMs > SLICE_MS) await this.#letOthersRun();
        const found = typeof name === "string" ? this.#look(visit, name, seen) : name;
        if ("kind" in found) yield found.kind === "skipped" ? withPlace(found, visit, name) : found;
        else folders.push(typeof name === "string" && isItself(found, visit, name) ? name : found);
      }
      if (folders.length > 0) waiting.push({ parent: visit, folders: folders.toReversed() });
    }
  }

  async #letOthersRun(): Promise<void> {
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
    this.#sliceStartedMs = performance.now();
  }

  #names(visit: Visit): (string | SkippedEntry)[] {
    try {
      return readdirSync(visit.localPath).sort();
    } catch (error) {
      return [skipped(visit.localPath, `cannot be read (${codeOf(error)})`)];
    }
  }

  /** One name of a folder: an entry, or a folder to visit. */
  #look(parent: Visit, name: string, seen: Map<string, string>): LocalEntry | Visit {
    const localPath = join(parent.localPath, name);
    const problem = nameProblem(name);
    if (problem !== undefined) return skipped(localPath, `the server cannot store this name: ${problem}`);
    const canonical = name.normalize("NFC");
    const twin = seen.get(canonical);
    if (twin !== undefined)
      return skipped(localPath, "the server holds its name equal to another one beside it");
    seen.set(canonical, name);
    const place = childPath(parent.place, canonical);
    let stats: Stats;
    try {
      stats = lstatSync(localPath);
    } catch (error) {
      return skipped(localPath, `cannot be looked at (${codeOf(error)})`);
    }
    return stats.isSymbolicLink()
      ? this.#lookThroughLink(parent, localPath, place)
      : this.#entryOf({ parent, localPath, realPath: join(parent.realPath, name), place, stats });
  }

  #lookThroughLink(parent: Visit, localPath: string, place: string): LocalEntry | Visit {
    let realPath: string;
    let stats: Stats;
    try {
      realPath = realpathSync(localPath);
      stats = lstatSync(realPath);
    } catch (error) {
      const why = codeOf(error);
      if (why === "ENOENT") return skipped(localPath, "symbolic link that points to nothing");
      if (why === "ELOOP") return skipped(localPath, "symbolic link that points to itself");
      return skipped(localPath, `symbolic link that cannot be followed (${why})`);
    }
    const isInside = realPath === this.#realTop || realPath.startsWith(withSeparator(this.#realTop));
    if (!isInside) return skipped(localPath, "symbolic link that leads out of the folder");
    if (stats.isDirectory()) {
      for (let at: Visit | undefined = parent; at !== undefined; at = at.above) {
        if (at.realPath === realPath) return skipped(localPath, "symbolic link to a folder that it lies in");
      }
      if (++this.#linkedFolders > LINKED_FOLDERS_MAX) {
        return skipped(localPath, `one of more than ${LINKED_FOLDERS_MAX} symbolic links to folders`);
      }
    }
    return this.#entryOf({ parent, localPath: realPath, realPath, place, stats });
  }

  #entryOf(found: {
    parent: Visit;
    localPath: string;
    realPath: string;
    place: string;
    stats: Stats;
  }): LocalEntry | Visit {
    const { parent, localPath, realPath, place, stats } = found;
    if (stats.isDirectory()) {
      if (parent.depth >= FOLDER_DEPTH_MAX) return skipped(localPath, "lies too deep");
      return { localPath, place, realPath, above: parent, depth: parent.depth + 1 };
    }
    if (!stats.isFile()) return skipped(localPath, "is neither a file nor a folder");
    return {
      kind: "file",
      localPath,
      place,
      folder: parent.place,
      sizeBytes: stats.size,
      mtimeMs: toldTimeMs(stats.mtimeMs),
      ctimeMs: stats.ctimeMs,
    };
  }
}

/** The folder that comes next; undefined after the last. */
function next(waiting: WaitingFolders[]): Visit | undefined {
  const group = waiting.at(-1);
  const folder = group?.folders.pop();
  if (group === undefined || folder === undefined) return undefined;
  if (group.folders.length === 0) waiting.pop();
  return typeof folder === "string" ? below(group.parent, folder) : folder;
}

/** A folder of that name in another one, which no link leads to. */
function below(parent: Visit, name: string): Visit {
  return {
    localPath: join(parent.localPath, name),
    place: childPath(parent.place, name.normalize("NFC")),
    realPath: join(parent.realPath, name),
    above: parent,
    depth: parent.depth + 1,
  };
}

function isItself(found: Visit, parent: Visit, name: string): boolean {
  return found.localPath === join(parent.localPath, name) && found.realPath === join(parent.realPath, name);
}

function skipped(localPath: string, why: string): SkippedEntry {
  return { kind: "skipped", localPath, why };
}

function withPlace(entry: SkippedEntry, parent: Visit, name: string | SkippedEntry): SkippedEntry {
  if (typeof name !== "string") return { ...entry, place: parent.place };
  return nameProblem(name) === undefined
    ? { ...entry, place: childPath(parent.place, name.normalize("NFC")) }
    : entry;
}

function withSeparator(path: string): string {
  return path.endsWith(sep) ? path : path + sep;
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "unknown error";
}
