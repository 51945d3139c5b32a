// What somebody does to the selected files and folders, and how it is taken back.
import type { FileEntry } from "#wire/webapi/files.ts";
import { addressOf, door, type Place, requireBegun } from "./api.ts";
import type { Message } from "./toast.tsx";
import { below, counted, nameOf } from "./words.ts";

/** What an act needs of the folder. */
export interface ActsOf {
  readonly here: Place;
  readonly say: (message: Message | undefined) => void;
  readonly refresh: () => void;
}

function named(entries: readonly FileEntry[]): string {
  return entries.length === 1 ? (entries[0]?.name ?? "") : counted(entries.length, "item");
}

function placeIn({ root, path }: Place, name: string): Place {
  return { root, path: below(path, name) };
}

async function told(acts: ActsOf, act: () => Promise<Message>): Promise<void> {
  try {
    acts.say(await act());
  } catch (error) {
    acts.say({ text: textOf(error), isProblem: true });
  } finally {
    acts.refresh();
  }
}

/** What is said of an act that went wrong on the way: what has been done by then, and the way back from it. */
function brokenOff(error: unknown, done: string | undefined, back: Pick<Message, "undo">): Message {
  return done === undefined
    ? { text: textOf(error), isProblem: true }
    : { text: `${sentence(textOf(error))} Before that: ${done}.`, isProblem: true, ...back };
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function sentence(text: string): string {
  return /[.!?]$/u.test(text) ? text : `${text}.`;
}

/** Takes back all that it can; rejects with the first refusal, which keeps no others from coming back. */
async function takeBack<T>(done: readonly T[], back: (one: T) => Promise<unknown>): Promise<void> {
  const problems: Error[] = [];
  for (const one of done) {
    try {
      await back(one);
    } catch (error) {
      problems.push(error instanceof Error ? error : new Error(String(error)));
    }
  }
  const [first] = problems;
  if (first === undefined) return;
  if (done.length === 1) throw first;
  const left = `${problems.length.toLocaleString("en")} of ${counted(done.length, "item")}`;
  throw new Error(`${sentence(first.message)} ${left} could not be taken back.`);
}

/** Puts entries into the trash. */
export function trashAll(acts: ActsOf, entries: readonly FileEntry[]): Promise<void> {
  return told(acts, async () => {
    const ids: string[] = [];
    const undo = (): Promise<void> => takeBack(ids, (id) => door.restore(acts.here.root, id));
    try {
      for (const { name } of entries) ids.push((await door.toTrash(placeIn(acts.here, name))).id);
    } catch (error) {
      const done = ids.length === 0 ? undefined : `${counted(ids.length, "item")} moved to the trash`;
      return brokenOff(error, done, { undo });
    }
    return { text: `Moved ${named(entries)} to the trash.`, undo };
  });
}

/** Moves entries into another folder. */
export function moveAll(acts: ActsOf, entries: readonly FileEntry[], folder: string): Promise<void> {
  return told(acts, async () => {
    const moved: { readonly from: string; readonly to: string }[] = [];
    const { root } = acts.here;
    const where = folder === "/" ? "the top folder" : nameOf(folder);
    if (folder === acts.here.path)
      return { text: `${named(entries)} ${entries.length === 1 ? "is" : "are"} in ${where} already.` };
    const undo = (): Promise<void> =>
      takeBack(moved, ({ from, to }) => door.move({ root, path: to }, from, "rename"));
    try {
      for (const { name } of entries) {
        const from = below(acts.here.path, name);
        const { path: to } = await door.move({ root, path: from }, below(folder, name), "rename");
        moved.push({ from, to });
      }
    } catch (error) {
      const done = moved.length === 0 ? undefined : `${counted(moved.length, "item")} moved to ${where}`;
      return brokenOff(error, done, { undo });
    }
    return { text: `Moved ${named(entries)} to ${where}.`, undo };
  });
}

/** Copies entries into a folder, under free names. */
export function copyAll(acts: ActsOf, entries: readonly FileEntry[], folder: string): Promise<void> {
  return told(acts, async () => {
    const { root } = acts.here;
    const made: string[] = [];
    let isKept = false;
    const undo = (): Promise<void> => takeBack(made, (path) => door.toTrash({ root, path }));
    // Who may not delete there cannot take it back.
    const back = (): Pick<Message, "undo"> => (isKept ? {} : { undo });
    try {
      for (const { name } of entries) {
        const place = placeIn(acts.here, name);
        const { path, kept } = await door.copy(place, below(folder, name), "rename");
        made.push(path);
        isKept ||= kept === true;
      }
    } catch (error) {
      const done = made.length === 0 ? undefined : `${counted(made.length, "item")} copied`;
      return brokenOff(error, done, back());
    }
    return { text: `Copied ${named(entries)}.`, ...back() };
  });
}

/** Renames an entry, and returns the name as the door keeps it. Rejects with what the door says. */
export async function rename(acts: ActsOf, entry: FileEntry, wanted: string): Promise<string> {
  const { here, say, refresh } = acts;
  const { name, path: target } = await door.move(placeIn(here, entry.name), below(here.path, wanted), "fail");
  refresh();
  const undo = async (): Promise<void> => {
    await door.move({ root: here.root, path: target }, below(here.path, entry.name), "fail");
  };
  say({ text: `Renamed ${entry.name} to ${name}.`, undo });
  return name;
}

/** Browsers drop silently what is more than ten downloads in a second. */
const SAVE_EVERY_MS = 150;

/** Saves entries on this device, one after another: files as they are, folders as archives. */
export async function saveAll(
  { here, say }: Pick<ActsOf, "here" | "say">,
  entries: readonly FileEntry[],
): Promise<void> {
  for (const [at, { name, kind }] of entries.entries()) {
    if (at > 0) await new Promise((resolve) => setTimeout(resolve, SAVE_EVERY_MS));
    const isFolder = kind === "folder";
    const address = addressOf(isFolder ? "/api/zip" : "/api/content", placeIn(here, name));
    try {
      if (isFolder) await requireBegun(address);
    } catch (error) {
      say({ text: `${name} was not downloaded: ${textOf(error)}`, isProblem: true });
      continue;
    }
    const link = document.createElement("a");
    link.href = address;
    link.download = isFolder ? `${name}.zip` : name;
    link.click();
  }
}
