// Draws what a power cut may leave: which unflushed changes are on disk, whole, torn or not at all.
import type { SeededRandom } from "#prove/seeded-random.ts";
import {
  applied,
  changeNames,
  type DiskFile,
  DiskFolder,
  type FileChange,
  type NameChange,
} from "./disk-model.ts";

const SECTOR_BYTES = 512;

/** The kind of a state: nothing, everything, or a part of what was not flushed. */
export type Mixture = "least" | "most" | "prefix" | "reordered" | "torn";

/** Random kinds, those most likely to break something first. */
export const RANDOM_MIXTURES: readonly Mixture[] = ["reordered", "torn", "prefix", "most"];

/** A state of the disk: all folders, and the bytes of all files, by their paths below its root. */
export interface CrashImage {
  readonly folders: readonly string[];
  readonly files: ReadonlyMap<string, Buffer>;
}

/** Returns the state that lacks only one file's or folder's unflushed changes, as if those came last. */
export function imageWithout(root: DiskFolder, late: DiskFile | DiskFolder): CrashImage {
  return imageOf(
    root,
    (folder) => (folder === late ? [] : folder.pending),
    (file) => (file === late ? file.durable : applied(file.durable, file.pending)),
  );
}

/** Draws one legal state. */
export function drawImage(root: DiskFolder, mixture: Mixture, random: SeededRandom): CrashImage {
  return imageOf(
    root,
    ({ pending }) => chosenNames(pending, mixture, random),
    (file) => fileBytes(file, mixture, random),
  );
}

function imageOf(
  root: DiskFolder,
  namesOf: (folder: DiskFolder) => readonly NameChange[],
  bytesOf: (file: DiskFile) => Buffer,
): CrashImage {
  const folders: string[] = [];
  const files = new Map<string, Buffer>();
  const visit = (folder: DiskFolder, prefix: string): void => {
    const names = new Map(folder.durable);
    for (const change of namesOf(folder)) changeNames(names, change);
    for (const [name, node] of names) {
      const path = prefix + name;
      if (node instanceof DiskFolder) {
        folders.push(path);
        visit(node, `${path}/`);
      } else files.set(path, bytesOf(node));
    }
  };
  visit(root, "");
  return { folders, files };
}

function chosenNames(
  pending: readonly NameChange[],
  mixture: Mixture,
  random: SeededRandom,
): readonly NameChange[] {
  if (mixture === "least") return [];
  if (mixture === "most") return pending;
  if (mixture === "prefix" || random.chance(0.3)) return pending.slice(0, random.between(0, pending.length));
  return pending.filter(() => random.chance(0.5));
}

function fileBytes(file: DiskFile, mixture: Mixture, random: SeededRandom): Buffer {
  const { durable, pending } = file;
  if (pending.length === 0 || mixture === "least") return durable;
  if (mixture === "most") return applied(durable, pending);
  if (mixture === "prefix") return applied(durable, pending.slice(0, random.between(0, pending.length)));
  if (mixture === "torn") {
    const whole = random.between(0, pending.length - 1);
    const torn = tear(pending[whole], random, 0.5);
    return applied(durable, [...pending.slice(0, whole), ...torn]);
  }
  const chance = random.pick([0, 0.1, 0.5, 0.9, 1]);
  const chosen = pending.flatMap((change) => {
    if (!random.chance(chance)) return [];
    return random.chance(0.2) ? tear(change, random, 0.7) : [change];
  });
  // The length may be there before the bytes are: what is missing then reads as zeros.
  if (random.chance(0.3)) chosen.push({ offset: file.length, data: Buffer.alloc(0) });
  return applied(durable, chosen);
}

/** Splits a write into sectors, each there or not. */
function tear(change: FileChange | undefined, random: SeededRandom, chance: number): FileChange[] {
  if (change === undefined || "length" in change)
    return change === undefined || random.chance(0.5) ? [] : [change];
  const { offset, data } = change;
  const pieces: FileChange[] = [];
  for (let at = 0; at < data.length; ) {
    const end = Math.min(data.length, at + SECTOR_BYTES - ((offset + at) % SECTOR_BYTES));
    if (random.chance(chance)) pieces.push({ offset: offset + at, data: data.subarray(at, end) });
    at = end;
  }
  return pieces;
}
