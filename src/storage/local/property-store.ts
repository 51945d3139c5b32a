// Properties in the embedded engine: reads from the snapshot, changes through the writer.
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ChangeContext, Inode, InodeId } from "#storage/contract/inode.ts";
import type {
  PropertyEdit,
  PropertyOutcome,
  PropertyStorage,
  StoredProperty,
} from "#storage/contract/properties.ts";
import { PROPERTY_BYTES } from "#storage/metadata/property-rows.ts";
import { KIND_DIRECTORY } from "#storage/metadata/schema.ts";
import type { SnapshotTables } from "#storage/metadata/snapshot-reader.ts";
import type { WriteQueue } from "#storage/writer/write-queue.ts";

/** Entries that one turn of the event loop reads. */
const PAGE = 1_000;

/** Name, id, whether it is a directory, bytes of its properties. */
type Child = readonly [name: string, id: InodeId, isFolder: 0 | 1, bytes: number];

type Statement = ReturnType<SnapshotTables["prepare"]>;

/** See PropertyStorage. */
export class LocalProperties implements PropertyStorage {
  readonly #tables: SnapshotTables;
  readonly #queue: Pick<WriteQueue, "submit">;
  readonly #nowMs: () => number;
  readonly #ofInode: Statement;
  readonly #bytesOf: Statement;
  readonly #bytesIn: Statement;
  /** Made when it is first used: on the shared engine rows below a folder may be missing. */
  #below: Statement | undefined;

  constructor({
    tables,
    queue,
    nowMs,
  }: {
    tables: SnapshotTables;
    queue: Pick<WriteQueue, "submit">;
    nowMs: () => number;
  }) {
    this.#tables = tables;
    this.#queue = queue;
    this.#nowMs = nowMs;
    this.#ofInode = tables.prepare(
      "SELECT namespace, name, xml FROM property WHERE inode_id = ? ORDER BY namespace, name",
    );
    this.#bytesOf = tables.prepare(`SELECT sum(${PROPERTY_BYTES}) FROM property WHERE inode_id = ?`);
    this.#bytesIn = tables.prepare("SELECT property_bytes FROM root WHERE owner = ?");
  }

  of(inodeId: InodeId): readonly StoredProperty[] {
    const rows = this.#tables.read(() => this.#ofInode.all(inodeId) as unknown as [string, string, string][]);
    return rows.map(([namespace, name, xml]) => ({ namespace, name, xml }));
  }

  bytesIn(owner: string): number {
    return this.#tables.read(() => numberOf(this.#bytesIn.get(owner)));
  }

  async copiedBytes(owner: string, { id, kind }: Inode): Promise<number> {
    if (this.bytesIn(owner) === 0) return 0;
    let bytes = this.#tables.read(() => numberOf(this.#bytesOf.get(id)));
    const folders = kind === "directory" ? [id] : [];
    for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
      for (let after: string | undefined = ""; after !== undefined; ) {
        const page = this.#pageOf(folder, after);
        for (const [, child, isFolder, own] of page) {
          bytes += own;
          if (isFolder === 1) folders.push(child);
        }
        after = page.length < PAGE ? undefined : page.at(-1)?.[0];
        await nextTurn();
      }
    }
    return bytes;
  }

  #pageOf(folder: InodeId, after: string): readonly Child[] {
    this.#below ??= this.#tables.prepare(
      `SELECT name, id, kind = ${KIND_DIRECTORY},
         coalesce((SELECT sum(${PROPERTY_BYTES}) FROM property WHERE inode_id = inode.id), 0)
       FROM inode WHERE parent_id = ? AND name > ? ORDER BY name LIMIT ${PAGE}`,
    );
    const below = this.#below;
    return this.#tables.read(() => below.all(folder, after) as unknown as readonly Child[]);
  }

  change(
    change: ChangeContext & { readonly inodeId: InodeId; readonly edits: readonly PropertyEdit[] },
  ): Promise<PropertyOutcome> {
    return this.#queue.submit({ op: "changeProperties", ...change, nowMs: this.#nowMs() });
  }
}

function numberOf(row: unknown): number {
  return ((row as [number | null] | undefined) ?? [0])[0] ?? 0;
}
