// Files and folders that somebody drops or chooses.
import type { Dropped } from "./uploads.ts";

/** What was dropped, with all that is below. */
export interface Drop {
  readonly files: Dropped[];
  /** Paths of folders, parents first. */
  readonly folders: string[];
}

/** Reads a drop. The browser forgets its items after the event, so they are taken at once. */
export async function readDrop(data: DataTransfer): Promise<Drop> {
  const entries = [...data.items]
    .filter(({ kind }) => kind === "file")
    .map((item) => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() }));
  const drop: Drop = { files: [], folders: [] };
  for (const { entry, file } of entries) {
    if (entry !== null) await take(entry, "", drop);
    else if (file !== null) drop.files.push({ path: file.name, file });
  }
  return drop;
}

/** Reads what a file input has; a chosen folder comes with its paths. */
export function readChosen(list: FileList): Drop {
  const files = [...list].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
  return { files, folders: [] };
}

async function take(entry: FileSystemEntry, above: string, drop: Drop): Promise<void> {
  const path = above + entry.name;
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => {
      (entry as FileSystemFileEntry).file(resolve, reject);
    });
    drop.files.push({ path, file });
    return;
  }
  drop.folders.push(path);
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (;;) {
    const batch = await new Promise<FileSystemEntry[]>((resolve, reject) => {
      reader.readEntries(resolve, reject);
    });
    if (batch.length === 0) return;
    for (const child of batch) await take(child, `${path}/`, drop);
  }
}
