// A process that changes the store named on its command line until it is killed, and prints each step's begin
// and acknowledgement.
import { writeSync } from "node:fs";
import { BY_OWNER, OWNER, openTestStorage, patterned, readAll, upload } from "./store.fixture.ts";

/** State of one file after a step: absent, or so many bytes of a pattern under a name. */
export interface FileState {
  readonly name: string;
  readonly size: number;
  readonly seed: number;
}

/** A line of the process: a step `begin`s, or is `done` and leaves the file in this state. */
export interface CrashLine {
  readonly event: "begin" | "done" | "failed" | "open";
  readonly file: string;
  /** null: the file is gone. */
  readonly state: FileState | null;
  readonly text?: string;
}

const [, , directory = "", mode = "load", firstNumber = "0"] = process.argv;
const SIZES = [0, 100, 4_096, 65_536, 65_537, 300_000, 4_000_001];

function say(line: CrashLine): void {
  // Written synchronously, before the process can be killed.
  writeSync(1, `${JSON.stringify(line)}\n`);
}

const storage = await openTestStorage(directory);
const root = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
say({ event: "open", file: "", state: null });

async function step(file: string, state: FileState | null, change: () => Promise<unknown>): Promise<void> {
  say({ event: "begin", file, state });
  try {
    await change();
    say({ event: "done", file, state });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    say({ event: "failed", file, state, text: code });
    if (mode === "load") throw error;
  }
}

/** Every kind of change on one file, in a directory that is removed at the end. */
async function lifeOf(number: number): Promise<void> {
  const file = `f${number}`;
  const parentId = root.directoryId;
  const sizeAt = (index: number): number => SIZES[(number + index) % SIZES.length] ?? 0;
  const state = (name: string, index: number): FileState => ({
    name,
    size: sizeAt(index),
    seed: number + index,
  });
  const bytes = ({ size, seed }: FileState): Buffer => patterned(size, seed);
  const find = (name: string): number => storage.resolve(OWNER, [name]).chain.at(-1)?.id ?? 0;
  const first = state(file, 0);
  await step(file, first, () =>
    first.size <= 65_536 && number % 2 === 0
      ? storage.createFile({ ...BY_OWNER, parentId, name: file, data: bytes(first), mtimeMs: 0 })
      : upload(storage, { parentId, name: file, bytes: bytes(first) }),
  );
  const replaced = state(file, 3);
  await step(file, replaced, () => upload(storage, { parentId, name: file, bytes: bytes(replaced) }));
  // A write over the whole file leaves the same state as an upload of the same bytes.
  const written = { ...replaced, seed: replaced.seed + 1_000 };
  const data = bytes(written).subarray(0, 4_000_001);
  await step(file, written, () =>
    storage.writeRange({ ...BY_OWNER, fileId: find(file), offset: 0, data, ifMatch: undefined }),
  );
  const renamed = { ...written, name: `r${number}` };
  await step(file, renamed, () =>
    storage.rename({ ...BY_OWNER, inodeId: find(file), parentId, name: renamed.name, onConflict: "fail" }),
  );
  let trashId = "";
  await step(file, null, async () => {
    trashId = (await storage.trash({ ...BY_OWNER, inodeId: find(renamed.name) })).item.id;
  });
  await step(file, renamed, () =>
    storage.restore({ ...BY_OWNER, trashId, names: undefined, onConflict: "fail" }),
  );
  if (number % 3 > 0) return;
  const folder = `d${number}`;
  await step(folder, { name: folder, size: 0, seed: 0 }, () =>
    storage.createDirectory({ ...BY_OWNER, parentId, name: folder }),
  );
  await step(file, null, async () => {
    await storage.rename({
      ...BY_OWNER,
      inodeId: find(renamed.name),
      parentId: find(folder),
      name: "x",
      onConflict: "fail",
    });
  });
  if (number % 2 > 0) {
    await step(folder, null, () => storage.remove({ ...BY_OWNER, inodeId: find(folder), recursive: true }));
    return;
  }
  await step(folder, null, async () => {
    trashId = (await storage.trash({ ...BY_OWNER, inodeId: find(folder) })).item.id;
  });
  await step("trash", null, () => storage.purgeTrash({ owner: OWNER, trashIds: [trashId] }));
}

if (mode === "load") {
  let next = Number(firstNumber);
  const lane = async (): Promise<never> => {
    for (;;) await lifeOf(next++);
  };
  await Promise.all(Array.from({ length: 6 }, lane));
} else {
  // One of each in sequence, for faults at exact places; then the operations that still work after a failure.
  for (let number = 0; number < 3; number++) await lifeOf(Number(firstNumber) + number);
  const { entries } = storage.list(root.directoryId, { limit: 10, pageToken: "", sort: "name" });
  for (const { id, kind } of entries) if (kind === "file") await readAll(storage, id);
  say({ event: "done", file: "failure", state: null, text: storage.failure ?? "" });
  await storage.close();
}
