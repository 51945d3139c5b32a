// The folder that relative paths start from, kept between commands.

import { splitPath } from "#base/names.ts";
import { readStored, writeStored } from "#client/signin/stored-json.ts";
import { removePrivateFile } from "#os/private-file.ts";
import { HOME, type RemotePath } from "./remote-path.ts";

/** The current folder and the one before. */
export interface Place {
  readonly current: RemotePath;
  readonly previous: RemotePath;
}

/** The file with the current folder. */
export class WorkingFolderFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** The stored folder; the own root when there is none. */
  async read(): Promise<Place> {
    const fields = await readStored(this.#path);
    const at = (rootField: string, pathField: string): RemotePath => {
      const path = fields?.text(pathField);
      return path === undefined || !isPath(path) ? HOME : { root: fields?.text(rootField) ?? "", path };
    };
    return { current: at("root", "path"), previous: at("previous_root", "previous_path") };
  }

  /** Stores a new folder; the one before stays for `cd -`. */
  async write(current: RemotePath, previous: RemotePath): Promise<void> {
    await writeStored(this.#path, {
      root: current.root,
      path: current.path,
      previous_root: previous.root,
      previous_path: previous.path,
    });
  }

  /** Resets to the own root. */
  async clear(): Promise<void> {
    await removePrivateFile(this.#path);
  }
}

function isPath(path: string): boolean {
  try {
    splitPath(path);
    return true;
  } catch {
    return false;
  }
}
