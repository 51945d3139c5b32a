// The queue of uploads: a few files at once, again after failures, with questions where a name is taken.
import { door, type Place, Refusal } from "./api.ts";
import { endUploads, keyOfUpload } from "./cut-uploads.ts";
import { FILE_GONE, sendFile } from "./send-file.ts";
import { Attempts } from "./upload-attempts.ts";
import { below, folderOf, nameOf, numberedName } from "./words.ts";

const AT_ONCE = 4;
const TELL_EVERY_MS = 100;

/** How far a file is. */
export type UploadState = "waiting" | "sending" | "taken" | "done" | "failed" | "skipped";

/** A file to send. */
export interface UploadItem {
  readonly id: number;
  readonly file: File;
  place: Place;
  state: UploadState;
  sent: number;
  replaces: boolean;
  /** True once it is to be kept beside what has its name, under the next number that is free. */
  isBeside: boolean;
  problem: string | undefined;
}

/** A file with its path below the folder where it was dropped. */
export interface Dropped {
  readonly path: string;
  readonly file: File;
}

/** A folder that was not made, and why. */
export interface UnmadeFolder {
  readonly place: Place;
  readonly problem: string;
}

/** Why nothing more is sent. */
export interface Stop {
  readonly text: string;
  /** True where the person can make room. */
  readonly isFull: boolean;
}

/** What the page shows of the queue. */
export interface UploadsView {
  readonly items: readonly UploadItem[];
  readonly unmade: readonly UnmadeFolder[];
  readonly total: number;
  readonly done: number;
  readonly sentBytes: number;
  readonly totalBytes: number;
  /** Why nothing is sent at the moment; undefined while it goes on. */
  readonly stopped: Stop | undefined;
  /** True while the door is asked again. */
  readonly isRetrying: boolean;
}

/** What the queue does outside of itself. */
export interface UploadsDeps {
  readonly send: typeof sendFile;
  readonly makeFolder: (place: Place) => Promise<unknown>;
  readonly isFolder: (place: Place) => Promise<boolean>;
  readonly isThere: (place: Place) => Promise<boolean>;
  /** Ends what has begun of uploads, named by their keys. */
  readonly end: (keys: readonly string[]) => void;
  readonly wait: (ms: number) => Promise<void>;
}

const OF_THE_PAGE: UploadsDeps = {
  send: sendFile,
  makeFolder: door.makeFolder,
  isFolder: async (place) => (await door.stat(place)).kind === "folder",
  isThere: (place) =>
    door.stat(place).then(
      () => true,
      (error: unknown) => {
        if (error instanceof Refusal && error.code === "NO_SUCH_PATH") return false;
        throw error;
      },
    ),
  end: endUploads,
  wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms * (0.5 + Math.random() / 2))),
};

/** The page's uploads; they go on while it shows something else. */
export class Uploads {
  readonly #deps: UploadsDeps;
  #items: UploadItem[] = [];
  readonly #listeners = new Set<() => void>();
  /** Which are made, and whether each was there before. */
  readonly #folders = new Map<string, Promise<"made" | "there">>();
  readonly #unmade = new Map<string, UnmadeFolder>();
  #running = 0;
  #retrying = 0;
  #stopped: Stop | undefined;
  #nextId = 1;
  #gone = new AbortController();
  #view: UploadsView = this.#look();
  #isTelling = false;
  readonly #onArrival = new Set<(folder: Place) => void>();

  constructor(deps: UploadsDeps = OF_THE_PAGE) {
    this.#deps = deps;
  }

  /** Adds files and folders below a place. */
  add(into: Place, files: readonly Dropped[], folders: readonly string[]): void {
    this.#items = this.#items.filter(({ state }) => state !== "done" && state !== "skipped");
    for (const { path, file } of files)
      this.#items.push({
        id: this.#nextId++,
        file,
        place: { root: into.root, path: below(into.path, path) },
        state: "waiting",
        sent: 0,
        replaces: false,
        isBeside: false,
        problem: undefined,
      });
    for (const path of folders)
      void this.#makeDropped({ root: into.root, path: below(into.path, path) }, this.#gone.signal);
    this.#stopped = undefined;
    this.#tell();
    this.#go();
  }

  /** What to do with files whose name is taken. */
  answer(items: readonly UploadItem[], how: "both" | "replace" | "skip"): void {
    for (const item of items) {
      if (item.state !== "taken") continue;
      // What had begun of it was to be a new file of this name.
      this.#deps.end([keyOf(item)]);
      if (how === "skip") item.state = "skipped";
      else {
        item.replaces = how === "replace";
        item.isBeside = how === "both";
        if (item.isBeside) this.#renumber(item);
        item.state = "waiting";
      }
    }
    this.#tell();
    this.#go();
  }

  /** Sends again what failed, and goes on after a stop. */
  retry(): void {
    this.#stopped = undefined;
    for (const item of this.#items) if (item.state === "failed") item.state = "waiting";
    for (const { place } of this.#unmade.values()) void this.#makeDropped(place, this.#gone.signal);
    this.#tell();
    this.#go();
  }

  /** Gives up all that has not arrived, at the server too; what has failed may go on when its file is chosen again. */
  cancel(): void {
    this.#gone.abort();
    this.#gone = new AbortController();
    this.#deps.end(this.#items.filter(({ state }) => state !== "done" && state !== "failed").map(keyOf));
    this.#items = [];
    this.#unmade.clear();
    this.#stopped = undefined;
    this.#tell();
  }

  /** Calls back after a file or folder has come into a folder; the returned function ends that. */
  onArrival(listener: (folder: Place) => void): () => void {
    this.#onArrival.add(listener);
    return () => this.#onArrival.delete(listener);
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly view = (): UploadsView => this.#view;

  #go(): void {
    for (const item of this.#items) {
      if (this.#running >= AT_ONCE || this.#stopped !== undefined) return;
      if (item.state !== "waiting") continue;
      this.#running++;
      item.state = "sending";
      void this.#send(item, this.#gone.signal).finally(() => {
        this.#running--;
        this.#tell();
        this.#go();
        this.#forgetFolders();
      });
    }
  }

  async #send(item: UploadItem, signal: AbortSignal): Promise<void> {
    const attempts = new Attempts();
    while (!signal.aborted) {
      try {
        // A look costs less than a file that is sent to a number that is taken too.
        while (item.isBeside && !signal.aborted && (await this.#deps.isThere(item.place)))
          this.#renumber(item);
        await this.#makeFolder({ root: item.place.root, path: folderOf(item.place.path) });
        const onSent = (bytes: number): void => {
          item.sent = Math.min(bytes, item.file.size);
          this.#tell();
        };
        const onSafe = (bytes: number): void => attempts.noteSafe(bytes);
        const { place, file, replaces } = item;
        await this.#deps.send({ place, file, replaces, signal, onSent, onSafe }, attempts.isRepeated);
        item.sent = file.size;
        item.state = "done";
        this.#tellArrival({ root: place.root, path: folderOf(place.path) });
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (!(await this.#passes(item, error, attempts))) return;
      }
    }
  }

  /** Waits where the failure passes; else says what has become of the file. */
  async #passes(item: UploadItem, error: unknown, attempts: Attempts): Promise<boolean> {
    const refusal = error instanceof Refusal ? error : undefined;
    if (refusal !== undefined && (await this.#waits(item.place, refusal, attempts))) return true;
    item.sent = 0;
    if (refusal?.code === "PATH_EXISTS") {
      item.state = "taken";
      return false;
    }
    item.state = "failed";
    item.problem = refusal?.message ?? String(error);
    if (refusal !== undefined) this.#stopped = stopOf(refusal, item.place) ?? this.#stopped;
    // What is chosen again will be another file.
    if (refusal?.code === FILE_GONE) this.#deps.end([keyOf(item)]);
    return false;
  }

  /** Waits for the next try; false where none may help. */
  async #waits(place: Place, refusal: Refusal, attempts: Attempts): Promise<boolean> {
    const next = attempts.after(refusal);
    if (next === undefined) return false;
    if (next.isFolderGone) {
      this.#forgetFoldersOf(place);
      return true;
    }
    this.#retrying++;
    this.#tell();
    await this.#deps.wait(next.waitMs);
    this.#retrying--;
    return true;
  }

  /** A folder may be deleted between two drops. */
  #forgetFolders(): void {
    if (this.#running === 0) this.#folders.clear();
  }

  /** Those above a place have to be made again, the place itself too. */
  #forgetFoldersOf({ root, path: from }: Place): void {
    for (let path = from; path !== "/"; path = folderOf(path))
      this.#folders.delete(keyOfFolder({ root, path }));
  }

  /** Makes a folder and those above it, once. */
  #makeFolder(place: Place): Promise<"made" | "there"> {
    if (place.path === "/") return Promise.resolve("there");
    const key = keyOfFolder(place);
    let making = this.#folders.get(key);
    if (making === undefined) {
      making = this.#make(place).finally(() => this.#forgetFolders());
      this.#folders.set(key, making);
      making.catch(() => this.#folders.delete(key));
    }
    return making;
  }

  async #make(place: Place): Promise<"made" | "there"> {
    try {
      await this.#deps.makeFolder(place);
      this.#tellArrival({ root: place.root, path: folderOf(place.path) });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.code === "PATH_EXISTS") return "there";
      if (error.code !== "NO_SUCH_PATH") throw error;
      await this.#makeFolder({ root: place.root, path: folderOf(place.path) });
      await this.#deps.makeFolder(place);
    }
    return "made";
  }

  /** A folder of a drop, which may have no file that makes it. */
  async #makeDropped(place: Place, signal: AbortSignal): Promise<void> {
    const attempts = new Attempts();
    this.#unmade.delete(keyOfFolder(place));
    while (!signal.aborted) {
      try {
        if ((await this.#makeFolder(place)) === "made" || (await this.#deps.isFolder(place))) return;
        throw new Refusal(409, { error: "NOT_DIRECTORY", message: "a file has this name" });
      } catch (error) {
        const refusal = error instanceof Refusal ? error : undefined;
        if (refusal !== undefined && (await this.#waits(place, refusal, attempts))) continue;
        if (signal.aborted) return;
        this.#unmade.set(keyOfFolder(place), { place, problem: refusal?.message ?? String(error) });
        if (refusal !== undefined) this.#stopped = stopOf(refusal, place) ?? this.#stopped;
        return this.#tell();
      }
    }
  }

  #tellArrival(folder: Place): void {
    for (const listener of this.#onArrival) listener(folder);
  }

  /** Gives a file the next number that no other file of the queue wants. */
  #renumber(item: UploadItem): void {
    item.place = { ...item.place, path: this.#freePath(item.place.path) };
  }

  #freePath(path: string): string {
    const wanted = new Set(this.#items.map(({ place }) => place.path));
    const bare = nameOf(path).replace(/ \((\d+)\)(?=\.[^.]*$|$)/u, "");
    const before = Number(/ \((\d+)\)(?:\.[^.]*)?$/u.exec(nameOf(path))?.[1] ?? 1);
    for (let number = before + 1; ; number++) {
      const free = below(folderOf(path), numberedName(bare, number));
      if (!wanted.has(free)) return free;
    }
  }

  /** Tells the page at most ten times a second. */
  #tell(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    setTimeout(() => {
      this.#isTelling = false;
      this.#view = this.#look();
      for (const listener of this.#listeners) listener();
    }, TELL_EVERY_MS);
  }

  #look(): UploadsView {
    const items = this.#items.filter(({ state }) => state !== "skipped");
    return {
      items: this.#items,
      unmade: [...this.#unmade.values()],
      total: items.length,
      done: items.filter(({ state }) => state === "done").length,
      sentBytes: items.reduce((sum, { sent }) => sum + sent, 0),
      totalBytes: items.reduce((sum, { file }) => sum + file.size, 0),
      stopped: this.#stopped,
      isRetrying: this.#retrying > 0,
    };
  }
}

function keyOf({ place, file }: UploadItem): string {
  return keyOfUpload(place.root, place.path, file);
}

function keyOfFolder({ root, path }: Place): string {
  return JSON.stringify([root, path]);
}

/** Why nothing more is sent after a refusal; undefined for one of a single file. */
function stopOf({ code }: Refusal, { root }: Place): Stop | undefined {
  const space = root === "" ? "Your space" : `The space of ${root}`;
  switch (code) {
    case "QUOTA_EXCEEDED":
      return full(`${space} is full, so the upload has stopped.`, root);
    case "INODE_LIMIT":
      return full(`${space} holds no more files, so the upload has stopped.`, root);
    case "DISK_RESERVE":
      return stop("The server's disk is full, so the upload has stopped. Tell your administrator.");
    case "SIGN_IN":
      return stop(
        "Your sign-in has ended, so the upload has stopped. Sign in again in another tab, then try again.",
      );
    default:
      return undefined;
  }
}

function stop(text: string): Stop {
  return { text, isFull: false };
}

/** Only one's own trash can be emptied. */
function full(text: string, root: string): Stop {
  const todo = root === "" ? "Empty the trash or delete something" : "Ask for room there";
  return { text: `${text} ${todo}, then try again: it goes on where it was.`, isFull: root === "" };
}

/** The uploads of this page. */
export const uploads = new Uploads();
