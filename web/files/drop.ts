// Files and folders that somebody drops or chooses.
import type { Dropped } from "./uploads.ts";
import { counted } from "./words.ts";

const NAMED_MAX = 5;

/** What was dropped, with all that is below. */
export interface Drop {
  readonly files: Dropped[];
  /** Paths of folders, parents first. */
  readonly folders: string[];
  /** Paths of what the browser could not read. */
  readonly unreadable: string[];
}

/** Reads a drop. The browser forgets its items after the event, so they are taken at once. */
export async function readDrop(data: DataTransfer): Promise<Drop> {
  const entries = [...data.items]
    .filter(({ kind }) => kind === "file")
    .map((item) => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() }));
  const drop: Drop = { files: [], folders: [], unreadable: [] };
  for (const { entry, file } of entries) {
    if (entry !== null) await take(entry, "", drop);
    else if (file !== null) drop.files.push({ path: file.name, file });
  }
  return drop;
}

/** Reads what a file input has; a chosen folder comes with its paths. */
export function readChosen(list: FileList): Drop {
  const files = [...list].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
  return { files, folders: [], unreadable: [] };
}

/** Names what could not be read. */
export function unreadableText(paths: readonly string[]): string {
  const named = paths.slice(0, NAMED_MAX).join(", ");
  const others = paths.length > NAMED_MAX ? ` and ${counted(paths.length - NAMED_MAX, "other")}` : "";
  return `This browser could not read ${named}${others}. All else is uploaded.`;
}

/** Takes an entry and all below it; what cannot be read keeps nothing else from being taken. */
async function take(entry: FileSystemEntry, above: string, drop: Drop): Promise<void> {
  try {
    await takeReadable(entry, above, drop);
  } catch {
    drop.unreadable.push(above + entry.name);
  }
}

async function takeReadable(entry: FileSystemEntry, above: string, drop: Drop): Promise<void> {
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
