// Opens a crash state with the code that starts a node, without its writer's thread, and says what is not as it must be.
import { systemClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { asListed, byCrc32, foldersOf, linesOf, type StoreView } from "#prove/store/folder-contents.ts";
import { checkStorage } from "#storage/check-storage.ts";
import { chunkPath } from "#storage/chunk-names.ts";
import { ChunkPins } from "#storage/chunk-pins.ts";
import { openDataDirectory } from "#storage/data-directory.ts";
import { OpenChunkFiles } from "#storage/open-chunk-files.ts";
import { PinnedContent } from "#storage/pinned-content.ts";
import { SnapshotReader } from "#storage/snapshot-reader.ts";
import type { SharedPath } from "#storage/storage.ts";
import { OWNER } from "#storage/store.fixture.ts";

/** Recovers the folder, has every byte and counter checked, and tells the lines of each folder in it; throws what a start throws. */
export async function recoveredFolders(
  directory: string,
): Promise<{ folders: Map<string, string>; problems: string[] }> {
  const data = await openDataDirectory(directory, { clock: systemClock, random: systemRandom });
  data.release();
  const { differences, notes } = checkStorage(directory, { repair: false, deep: true });
  // A start sweeps; what it leaves of these is never removed.
  const leftovers = notes.filter((note) => note.includes("interrupted uploads"));
  const view = new ReadOnlyView(directory, data.databasePath);
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
