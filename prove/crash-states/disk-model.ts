// Model of a disk: the durable state of each file and folder, and the changes since that may be lost.
import { basename, dirname } from "node:path";
import type { TraceEvent } from "./trace-events.ts";

/** A change of a file that no flush has covered yet. */
export type FileChange = { readonly offset: number; readonly data: Buffer } | { readonly length: number };

/** A change of a folder's names that no flush has covered yet. */
export type NameChange =
  | { readonly add: string; readonly node: DiskFile | DiskFolder }
  | { readonly remove: string }
  | { readonly from: string; readonly to: string };

/** A file: durable bytes, and the changes since. */
export class DiskFile {
  durable: Buffer;
  readonly pending: FileChange[] = [];
  /** Where the next write without an offset goes. */
  length: number;
  readonly #flushes = new Map<string, number>();

  constructor(durable: Buffer = Buffer.alloc(0)) {
    this.durable = durable;
    this.length = durable.length;
  }

  write(offset: number | undefined, data: Buffer): void {
    const at = offset ?? this.length;
    this.pending.push({ offset: at, data });
    this.length = Math.max(this.length, at + data.length);
  }

  truncate(length: number): void {
    this.pending.push({ length });
    this.length = length;
  }

  beginFlush(thread: string): void {
    this.#flushes.set(thread, this.pending.length);
  }

  endFlush(thread: string): void {
    const count = this.#flushes.get(thread) ?? 0;
    this.#flushes.delete(thread);
    this.durable = applied(this.durable, this.pending.splice(0, count));
    for (const [other, begun] of this.#flushes) this.#flushes.set(other, Math.max(0, begun - count));
  }
}

/** A folder: durable names, and the changes since. */
export class DiskFolder {
  readonly durable = new Map<string, DiskFile | DiskFolder>();
  /** The names that the process itself sees. */
  readonly present = new Map<string, DiskFile | DiskFolder>();
  readonly pending: NameChange[] = [];
  readonly #flushes = new Map<string, number>();

  /** Adds a name that is there from the beginning. */
  addDurable(name: string, node: DiskFile | DiskFolder): void {
    this.durable.set(name, node);
    this.present.set(name, node);
  }

  change(change: NameChange): void {
    this.pending.push(change);
    changeNames(this.present, change);
  }

  beginFlush(thread: string): void {
    this.#flushes.set(thread, this.pending.length);
  }

  endFlush(thread: string): void {
    const count = this.#flushes.get(thread) ?? 0;
    this.#flushes.delete(thread);
    for (const change of this.pending.splice(0, count)) changeNames(this.durable, change);
    for (const [other, begun] of this.#flushes) this.#flushes.set(other, Math.max(0, begun - count));
  }
}

/** Applies one change to a folder's names. */
export function changeNames(names: Map<string, DiskFile | DiskFolder>, change: NameChange): void {
  if ("add" in change) names.set(change.add, change.node);
  else if ("remove" in change) names.delete(change.remove);
  else {
    const node = names.get(change.from);
    if (node === undefined) return;
    names.delete(change.from);
    names.set(change.to, node);
  }
}

/** Returns a file's bytes after changes. */
export function applied(bytes: Buffer, changes: readonly FileChange[]): Buffer {
  let length = bytes.length;
  let longest = length;
  for (const change of changes) {
    length = "length" in change ? change.length : Math.max(length, change.offset + change.data.length);
    longest = Math.max(longest, length);
  }
  if (changes.length === 0) return bytes;
  const result = Buffer.alloc(longest);
  bytes.copy(result);
  let end = bytes.length;
  for (const change of changes) {
    if ("length" in change) {
      if (change.length < end) result.fill(0, change.length, end);
      end = change.length;
      continue;
    }
    change.data.copy(result, change.offset);
    end = Math.max(end, change.offset + change.data.length);
  }
  return result.subarray(0, end);
}

/** The disk below one folder. */
export class DiskModel {
  readonly root = new DiskFolder();
  /** Files and folders with changes that no flush covers. */
  readonly unflushed = new Set<DiskFile | DiskFolder>();
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  apply(event: Exclude<TraceEvent, { kind: "said" }>): void {
    switch (event.kind) {
      case "create":
        return this.#create(event.path, event.truncates);
      case "write":
        return this.#changeFile(event.path, (file) => file.write(event.offset, event.data));
      case "truncate":
        return this.#changeFile(event.path, (file) => file.truncate(event.length));
      case "flush begins":
        return this.#find(event.path)?.beginFlush(event.thread);
      case "flush ended": {
        const node = this.#find(event.path);
        node?.endFlush(event.thread);
        if (node?.pending.length === 0) this.unflushed.delete(node);
        return;
      }
      case "mkdir":
        return this.#changeNames(event.path, { add: basename(event.path), node: new DiskFolder() });
      case "unlink":
        return this.#changeNames(event.path, { remove: basename(event.path) });
      case "rename": {
        if (dirname(event.path) !== dirname(event.to))
          throw new Error("a move between folders is not understood");
        return this.#changeNames(event.path, { from: basename(event.path), to: basename(event.to) });
      }
    }
  }

  #create(path: string, truncates: boolean): void {
    const folder = this.#parent(path);
    const present = folder.present.get(basename(path));
    if (present === undefined) this.#changeNames(path, { add: basename(path), node: new DiskFile() });
    else if (truncates) this.#changeFile(path, (file) => file.truncate(0));
  }

  #changeFile(path: string, change: (file: DiskFile) => void): void {
    const node = this.#find(path);
    if (!(node instanceof DiskFile)) return;
    change(node);
    this.unflushed.add(node);
  }

  #changeNames(path: string, change: NameChange): void {
    const folder = this.#parent(path);
    // A removed or replaced file is never flushed any more.
    const gone = "remove" in change ? change.remove : "to" in change ? change.to : undefined;
    const node = gone === undefined ? undefined : folder.present.get(gone);
    if (node !== undefined) this.unflushed.delete(node);
    folder.change(change);
    this.unflushed.add(folder);
  }

  #find(path: string): DiskFile | DiskFolder | undefined {
    let at: DiskFile | DiskFolder | undefined = this.root;
    for (const name of path.slice(this.#path.length + 1).split("/")) {
      if (name === "") continue;
      at = at instanceof DiskFolder ? at.present.get(name) : undefined;
    }
    return at;
  }

  #parent(path: string): DiskFolder {
    const folder = this.#find(dirname(path));
    if (folder instanceof DiskFolder) return folder;
    throw new Error(`${dirname(path)} is no folder`);
  }
}
