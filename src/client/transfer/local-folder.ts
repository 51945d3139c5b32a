// Makes the folders of a download, and refuses a server's names that lead out of them (failure B-09).
import { randomBytes } from "node:crypto";
import { lstatSync, mkdirSync, readdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { nameProblem } from "#base/names.ts";
import { ClientError, localFailure } from "#client/terminal/client-error.ts";

/** Names that Windows and its disks cannot store, or read as another path. */
const FORBIDDEN_ON_WINDOWS = /[\\<>:"|?*]|[. ]$|^(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?$/i;

/** Downloads of this or another process. */
const UNFINISHED = /^\.grove-get-.*\.part$/s;

/** How the folder in a mirror is called that holds what was put aside there; a time follows. */
export const PUT_ASIDE = ".grove-removed-";

/** What a folder keeps for those inside that wait to be filled. */
export interface FolderPlace {
  readonly path: string;
  /** True where the disk ignores case in names. */
  readonly isFolding: boolean;
}

/** One folder of this machine that a download fills. */
export class LocalFolder implements FolderPlace {
  readonly path: string;
  readonly isFolding: boolean;
  readonly #taken = new Set<string>();

  private constructor(path: string, isFolding: boolean) {
    this.path = path;
    this.isFolding = isFolding;
  }

  /**
   * Opens the top of a download, which the user has named: links to it are followed, and a missing folder is
   * made. Throws ClientError.
   */
  static top(path: string): LocalFolder {
    makeFolder(path);
    return new LocalFolder(path, foldsCase(path));
  }

  /** Opens or makes a claimed folder; a symbolic link in its place is refused. Throws ClientError. */
  static inside({ path: above, isFolding }: FolderPlace, name: string): LocalFolder {
    const path = join(above, name);
    makeFolder(path);
    return new LocalFolder(path, isFolding);
  }

  /**
   * Checks a server's name and reserves it: one entry's name, no path, and not the name of another entry.
   * Returns it. Throws ClientError.
   */
  claim(name: string): string {
    const problem =
      nameProblem(name) ??
      (process.platform === "win32" && FORBIDDEN_ON_WINDOWS.test(name)
        ? "this machine cannot store it"
        : undefined);
    if (problem !== undefined) {
      throw new ClientError("SERVER_BROKEN", `the server sent a name that is none: ${problem}`);
    }
    const key = this.#keyOf(name);
    if (this.#taken.has(key)) {
      throw new ClientError("LOCAL_FILE", "another entry of this folder has the same name on this machine", {
        todo: "Rename one of them on the cluster, or fetch them one by one.",
      });
    }
    this.#taken.add(key);
    return name;
  }

  /** Names in the folder without an entry, unfinished downloads and what was put aside excepted. Throws ClientError. */
  others(): string[] {
    try {
      return readdirSync(this.path).filter(
        (name) =>
          !this.#taken.has(this.#keyOf(name)) && !UNFINISHED.test(name) && !name.startsWith(PUT_ASIDE),
      );
    } catch (error) {
      throw localFailure(error, this.path);
    }
  }

  /** True when an entry has reserved a name. */
  get hasEntries(): boolean {
    return this.#taken.size > 0;
  }

  #keyOf(name: string): string {
    const canonical = name.normalize("NFC");
    return this.isFolding ? canonical.toLowerCase() : canonical;
  }
}

/** Makes a folder; an existing one is accepted unless it is reached through a symbolic link. */
function makeFolder(path: string): void {
  try {
    mkdirSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw localFailure(error, path);
    if (lstatSync(path).isDirectory()) return;
    throw new ClientError("LOCAL_FILE", `${path}: something that is no folder is in the way`, {
      todo: "Move it away, or choose another target.",
    });
  }
}

/** Tries the disk, since case folding depends on it and not on the system. */
function foldsCase(path: string): boolean {
  const name = `.grove-case-${randomBytes(6).toString("hex")}-a`;
  const probe = join(path, name);
  try {
    mkdirSync(probe);
  } catch (error) {
    throw localFailure(error, path);
  }
  try {
    lstatSync(join(path, name.toUpperCase()));
    return true;
  } catch {
    return false;
  } finally {
    rmdirSync(probe);
  }
}
