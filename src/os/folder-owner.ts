// Files in a service's folder are the service's, also those that root makes: it could not read them otherwise.
import { lchown, readdir, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { writeFileAtomic } from "./atomic-file.ts";
import { createPrivateFile } from "./private-file.ts";
import { makePrivateFolder } from "./private-folder.ts";

/** Gives files and folders to the owner of a folder, where root runs this; links are not followed. */
export async function giveToFolderOwner(folder: string, paths: readonly string[]): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = await stat(folder);
  for (const path of paths) await lchown(path, uid, gid);
}

/** A private folder in a service's, which is made with its first file. Whose the service's is, its files are. */
export class OwnedFolder {
  readonly #path: string;
  readonly #form: RegExp;

  /** `form` tells its files from foreign ones. */
  constructor(path: string, form: RegExp) {
    this.#path = path;
    this.#form = form;
  }

  /** The path of a file. */
  pathOf(name: string): string {
    return join(this.#path, name);
  }

  /** The names of its files; none without the folder. */
  async names(): Promise<string[]> {
    const names = await readdir(this.#path).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw error;
    });
    return names.filter((name) => this.#form.test(name));
  }

  /** Makes a new file with mode 0600; resolves when it is on stable storage. Rejects with EEXIST. */
  create(name: string, content: string): Promise<void> {
    return this.#make(name, (path) => createPrivateFile(path, content));
  }

  /** Makes or replaces a file with mode 0600 as a whole. */
  replace(name: string, content: string): Promise<void> {
    return this.#make(name, (path) => writeFileAtomic(path, content, { mode: 0o600 }));
  }

  /** Removes a file; a missing one is no error. */
  remove(name: string): Promise<void> {
    return rm(this.pathOf(name), { force: true });
  }

  async #make(name: string, make: (path: string) => Promise<void>): Promise<void> {
    makePrivateFolder(this.#path);
    await make(this.pathOf(name));
    await giveToFolderOwner(dirname(this.#path), [this.#path, this.pathOf(name)]);
  }
}
