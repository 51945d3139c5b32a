// What `grove import` reads from: folders before their files, and files by chunks from any chunk on.
import { nameProblem } from "#base/names.ts";
import { childPath } from "#client/connection/remote-path.ts";
import { FOLDER_DEPTH_MAX } from "#client/terminal/limits.ts";
import type { SourceState } from "#client/transfer/local-source.ts";

/** A folder of the source. */
export interface ImportFolder {
  readonly kind: "folder";
  /** Path below the top as it will be on the cluster, "/" for the top itself. */
  readonly place: string;
}

/** A file of the source. */
export interface ImportFile {
  readonly kind: "file";
  readonly place: string;
  /** Place of its folder. */
  readonly folder: string;
  /** Where the source has it: a path, an address, a key. */
  readonly address: string;
  readonly sizeBytes: number;
  /** 0 where the source tells no time. */
  readonly mtimeMs: number;
  /** What else tells a version, such as an etag; else empty. */
  readonly version: string;
}

/** An entry that cannot be imported, and why. */
export interface ImportSkipped {
  readonly kind: "skipped";
  readonly place: string;
  readonly why: string;
}

/** One result of a walk. */
export type ImportEntry = ImportFolder | ImportFile | ImportSkipped;

/** A place with files, on this machine or elsewhere. */
export interface ImportSource extends AsyncDisposable {
  /** Names it for people and in records, without secrets. */
  readonly name: string;
  /** The whole tree, folders before what is in them. Rejects with ClientError. */
  entries(): AsyncIterable<ImportEntry>;
  /** The state of a file now. Rejects with ClientError. */
  look(file: ImportFile): Promise<SourceState>;
  /** The chunks of a file from a chunk's offset on, of CHUNK_BYTES each, the last one shorter. */
  chunks(file: ImportFile, fromBytes: number): AsyncIterable<Buffer>;
}

/** An entry of a folder as a server lists it. */
export interface ListedEntry {
  /** Undefined for a name that is no text. */
  readonly name: string | undefined;
  readonly kind: "folder" | "file" | "link" | "other";
  readonly address: string;
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  readonly version: string;
}

interface Visit {
  readonly address: string;
  readonly place: string;
  readonly depth: number;
}

/** Walks a tree whose folders are listed one by one. A folder that cannot be listed is left out, and told. */
export async function* walkListings(
  top: string,
  list: (address: string) => Promise<readonly ListedEntry[]>,
): AsyncGenerator<ImportEntry, void, undefined> {
  const waiting: Visit[] = [{ address: top, place: "/", depth: 0 }];
  for (let visit = waiting.pop(); visit !== undefined; visit = waiting.pop()) {
    let listed: readonly ListedEntry[];
    try {
      listed = await list(visit.address);
    } catch (error) {
      // Without its top there is nothing to import.
      if (visit.depth === 0) throw error;
      yield { kind: "skipped", place: visit.place, why: `cannot be listed: ${(error as Error).message}` };
      continue;
    }
    yield { kind: "folder", place: visit.place };
    const seen = new Set<string>();
    const folders: Visit[] = [];
    for (const entry of listed) {
      const found = entryOf(visit, entry, seen);
      if (found.kind !== "folder") yield found;
      else folders.push({ address: entry.address, place: found.place, depth: visit.depth + 1 });
    }
    for (const folder of folders.toReversed()) waiting.push(folder);
  }
}

function entryOf(parent: Visit, entry: ListedEntry, seen: Set<string>): ImportEntry {
  const { name, address, sizeBytes, mtimeMs, version } = entry;
  const skip = (place: string, why: string): ImportSkipped => ({ kind: "skipped", place, why });
  if (name === undefined) return skip(parent.place, "has an entry whose name is no text");
  const place = childPath(parent.place, name.normalize("NFC"));
  const why = refusalOfName(name, seen);
  if (why !== undefined) return skip(place, why);
  if (entry.kind === "link") return skip(place, "symbolic link");
  if (entry.kind === "other") return skip(place, "is neither a file nor a folder");
  if (entry.kind === "file") {
    return { kind: "file", place, folder: parent.place, address, sizeBytes, mtimeMs, version };
  }
  return parent.depth >= FOLDER_DEPTH_MAX ? skip(place, "lies too deep") : { kind: "folder", place };
}

const PLAIN_NAME = /^[\u0020-\u007e]*$/;

/** Why a name cannot be stored beside those seen in its folder; undefined when it can. */
export function refusalOfName(name: string, seen: Set<string>): string | undefined {
  const problem = nameProblem(name);
  if (problem !== undefined) return `the server cannot store this name: ${problem}`;
  // Plain names have one form, so that a folder of millions of them takes no memory.
  if (PLAIN_NAME.test(name)) return undefined;
  const canonical = name.normalize("NFC");
  if (seen.has(canonical)) return "the server holds its name equal to another one beside it";
  seen.add(canonical);
  return undefined;
}

/** The state of a file that no clock of this machine has written. */
export function stateElsewhere(facts: Pick<ImportFile, "sizeBytes" | "mtimeMs" | "version">): SourceState {
  const { sizeBytes, mtimeMs, version } = facts;
  return { sizeBytes, mtimeMs, mtimeNs: BigInt(mtimeMs) * 1_000_000n, ctimeNs: 0n, version };
}
