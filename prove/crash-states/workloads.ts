// All workloads of up to three mutating operations on a prepared folder.
import { SeededRandom } from "#prove/seeded-random.ts";
import { type FolderContents, NOTHING } from "#prove/store/folder-contents.ts";
import { type FolderChange, WorkFolder } from "#prove/store/work-folder.ts";

/** A file just too large for the database. */
const LARGE_BYTES = 65_600;
const SMALL_BYTES = 300;
const LONGEST = 3;
const BOB = "bob@example.com";

const random = new SeededRandom(1);
const SMALL = random.bytes(SMALL_BYTES);
const LARGE = random.bytes(LARGE_BYTES);
const OTHER = random.bytes(LARGE_BYTES + 9);

/** Makes an operation for a folder; undefined where earlier ones leave it nothing to do. */
export type Operation = (folder: WorkFolder) => FolderChange | undefined;

/** By name; "reopen" stops the store and starts it again. */
export const OPERATIONS: Readonly<Record<string, Operation | "reopen">> = {
  mkdir: (folder) => folder.makeFolder("new"),
  create: (folder) => folder.create("created", SMALL),
  "create-in": (folder) => folder.create("d/created", SMALL),
  "upload-small": (folder) => folder.upload("a", OTHER.subarray(0, SMALL_BYTES)),
  upload: (folder) => folder.upload("uploaded", OTHER),
  overwrite: (folder) => folder.upload("b", OTHER),
  "overwrite-by-small": (folder) => folder.upload("b", SMALL),
  resume: (folder) => folder.uploadResumably("resumed", OTHER),
  abort: (folder) => folder.abort(OTHER),
  "write-small": (folder) => folder.write("a", 100, OTHER.subarray(0, 50)),
  write: (folder) => folder.write("b", 1_000, OTHER.subarray(0, 90)),
  "write-behind": (folder) => folder.write("b", LARGE_BYTES + 5, SMALL),
  shrink: (folder) => folder.setSize("b", LARGE_BYTES - 40),
  "shrink-small": (folder) => folder.setSize("b", SMALL_BYTES),
  grow: (folder) => folder.setSize("a", LARGE_BYTES + 77),
  rename: (folder) => folder.rename("a", "renamed"),
  replace: (folder) => folder.rename("b", "a"),
  move: (folder) => folder.rename("b", "d/moved"),
  "move-folder": (folder) => folder.rename("d", "moved"),
  copy: (folder) => folder.copy("b", "copied"),
  "copy-folder": (folder) => folder.copy("d", "copied-folder"),
  remove: (folder) => folder.remove("b"),
  "remove-folder": (folder) => folder.remove("d"),
  trash: (folder) => folder.trash("b"),
  "trash-folder": (folder) => folder.trash("d"),
  restore: (folder) => folder.restore(),
  purge: (folder) => folder.purge(),
  share: (folder) => folder.share("d", BOB),
  unshare: (folder) => folder.unshare("e", BOB),
  reopen: "reopen",
};

/** Operations nearly the same as another one; the longest workloads omit them. */
const ALIKE: ReadonlySet<string> = new Set([
  "create-in",
  "overwrite-by-small",
  "write-behind",
  "shrink-small",
  "move-folder",
  "trash-folder",
  "unshare",
]);

/** What every folder holds before a workload. */
export const PREPARED: FolderContents = {
  nodes: new Map([
    ["a", SMALL],
    ["b", LARGE],
    ["d", null],
    ["d/c", SMALL],
    ["d/l", OTHER],
    ["e", null],
  ]),
  trash: [{ path: "t", sizeBytes: LARGE_BYTES, nodes: new Map([["t", LARGE]]) }],
  grants: new Set([`e ${BOB}`]),
};

/** Brings an empty folder into this state. */
export async function prepare(folder: WorkFolder): Promise<void> {
  const changes: readonly (() => FolderChange | undefined)[] = [
    () => folder.create("a", SMALL),
    () => folder.upload("b", LARGE),
    () => folder.makeFolder("d"),
    () => folder.create("d/c", SMALL),
    () => folder.upload("d/l", OTHER),
    () => folder.makeFolder("e"),
    () => folder.share("e", BOB),
    () => folder.upload("t", LARGE),
    () => folder.trash("t"),
  ];
  for (const next of changes) {
    const change = next();
    if (change === undefined) throw new Error("the preparation is out of order");
    await change.run();
    folder.done(change);
  }
}

/** Names of operations, one after the other. */
export type Workload = readonly string[];

/**
 * All workloads of one, two and three operations in which each has something to do, those of three without
 * similar ones; long ones later, else in the seed's order.
 */
export function* allWorkloads(seed: number): Generator<Workload> {
  const order = new SeededRandom(seed).fork("workloads");
  let shorter: Workload[] = [[]];
  for (let length = 1; length <= LONGEST; length++) {
    const isAllowed = (name: string): boolean => length < LONGEST || !ALIKE.has(name);
    const names = Object.keys(OPERATIONS).filter(isAllowed);
    const longer = shuffled(
      shorter
        .filter((workload) => workload.every(isAllowed))
        .flatMap((workload) => names.map((name) => [...workload, name])),
      order,
    );
    shorter = [];
    for (const workload of longer) {
      if (!isPossible(workload)) continue;
      shorter.push(workload);
      yield workload;
    }
  }
}

function shuffled<T>(of: readonly T[], order: SeededRandom): T[] {
  const keyed = of.map((one) => ({ one, key: order.next() }));
  return keyed.sort((left, right) => left.key - right.key).map(({ one }) => one);
}

function isPossible(workload: Workload): boolean {
  const folder = new WorkFolder(noStore, "", PREPARED);
  return workload.every((name) => {
    const operation = OPERATIONS[name];
    if (operation === "reopen") return true;
    const change = operation?.(folder);
    if (change === undefined) return false;
    folder.done(change);
    return true;
  });
}

function noStore(): never {
  throw new Error("nothing is run here");
}

/** A folder that holds nothing yet. */
export const EMPTY: FolderContents = NOTHING;
