// Opens a crash state with the code that starts a node, without its writer's thread, and returns the faults.
import { hash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { asListed, byCrc32, foldersOf, linesOf, type StoreView } from "#prove/store/folder-contents.ts";
import { checkStorage } from "#storage/check/check-storage.ts";
import { chunkPath } from "#storage/chunks/chunk-names.ts";
import { ChunkPins } from "#storage/chunks/chunk-pins.ts";
import { OpenChunkFiles } from "#storage/chunks/open-chunk-files.ts";
import type { SharedPath } from "#storage/contract/storage.ts";
import { PinnedContent } from "#storage/local/pinned-content.ts";
import { OWNER } from "#storage/local/store.fixture.ts";
import { openDataDirectory } from "#storage/metadata/data-directory.ts";
import { SnapshotReader } from "#storage/metadata/snapshot-reader.ts";
import type { CrashImage } from "./crash-mixture.ts";
import { hashOf, isImmutable } from "./state-folder.ts";

/** Content of a recovered folder. */
export interface Found {
  /** Lines of each folder of the root. */
  readonly folders: ReadonlyMap<string, string>;
  readonly problems: readonly string[];
}

/** Recovers each state; of recovered folders with the same bytes only the first is checked. */
export class StateChecks {
  readonly #known = new Map<string, Found>();

  /**
   * Recovers the folder, checks every byte and counter, and returns the lines of each folder in it. Throws
   * errors of the start.
   */
  async recovered(directory: string, image: CrashImage): Promise<Found> {
    const data = await openDataDirectory(directory, { clock: systemClock, random: systemRandom });
    data.release();
    const key = recoveredKey(directory, image);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const found = await foundIn(directory, data.databasePath);
    this.#known.set(key, found);
    return found;
  }

  /** Forgets the results, for a batch with other folders; returns the number of folders checked. */
  forget(): number {
    const looked = this.#known.size;
    this.#known.clear();
    return looked;
  }
}

/** Identifies a recovered folder: the bytes of its files, and which of the image's chunks are left. */
function recoveredKey(directory: string, { files }: CrashImage): string {
  const parts: string[] = [];
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (!entry.isFile()) parts.push(`${entry.name}/`);
    // The WAL's index holds nothing that the WAL does not.
    else if (!entry.name.endsWith("-shm"))
      parts.push(`${entry.name} ${hash("sha1", readFileSync(join(directory, entry.name)))}`);
  }
  for (const [path, bytes] of files) {
    if (!isImmutable(path)) continue;
    const size = statSync(join(directory, path), { throwIfNoEntry: false })?.size;
    parts.push(`${path} ${hashOf(bytes)} ${size}`);
  }
  return parts.toSorted().join("\n");
}

async function foundIn(directory: string, databasePath: string): Promise<Found> {
  const { differences, notes } = checkStorage(directory, { repair: false, deep: true });
  // The start sweeps; leftovers that it keeps are never removed.
  const leftovers = notes.filter((note) => note.includes("interrupted uploads"));
  const view = new ReadOnlyView(directory, databasePath);
  try {
    const folders = await foldersOf(view, asListed);
    const lines = [...folders].map(([name, contents]) => [name, linesOf(contents, byCrc32)] as const);
    return { folders: new Map(lines), problems: [...differences, ...leftovers, ...view.problems] };
  } finally {
    view.close();
  }
}

/** Reads as a store does. */
class ReadOnlyView implements StoreView {
  readonly problems: string[] = [];
  readonly #reader: SnapshotReader;
  readonly #files: OpenChunkFiles;
  readonly #pins = new ChunkPins();

  constructor(directory: string, databasePath: string) {
    this.#reader = new SnapshotReader(databasePath, (error) => this.problems.push(String(error)));
    this.#files = new OpenChunkFiles((name) => chunkPath(directory, name));
  }

  root: StoreView["root"] = (owner) => this.#reader.root(owner);
  resolve: StoreView["resolve"] = (owner, names) => this.#reader.resolve(owner, names);
  list: StoreView["list"] = (id, page) => this.#reader.list(id, page);
  listTrash: StoreView["listTrash"] = (owner, query) => this.#reader.listTrash(owner, query);

  openFile: StoreView["openFile"] = (id) => {
    const damaged = (_: unknown, problem: string): void => void this.problems.push(problem);
    const deps = { reader: this.#reader, files: this.#files, pins: this.#pins, damaged };
    return new PinnedContent(deps, this.#reader.file(id));
  };

  grants(): SharedPath[] {
    const rows = this.#reader.tables.prepare("SELECT path, username FROM share_grant WHERE owner = ?");
    return this.#reader.tables.read(() =>
      (rows.all(OWNER) as unknown as [string, string][]).map(([path, username]) => ({ path, username })),
    );
  }

  close(): void {
    this.#files.closeAll();
    this.#reader.close();
  }
}
