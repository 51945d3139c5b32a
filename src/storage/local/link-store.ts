// Links on the main thread: read in the snapshot of the turn, changed and counted by the writer.
import type { ChangeContext, InodeId } from "#storage/contract/inode.ts";
import type {
  DownloadCount,
  DropClaim,
  LinkKind,
  LinkStorage,
  NewLink,
  StoredLink,
} from "#storage/contract/links.ts";
import { IS_HERE } from "#storage/metadata/moved-roots.ts";
import type { SnapshotTables } from "#storage/metadata/snapshot-reader.ts";
import type { WriteQueue } from "#storage/writer/write-queue.ts";

const COLUMNS = `link.id, owner, inode_id, token_hash, kind, password, pass_key, created_ms, ends_ms, max_downloads,
  max_bytes, max_files, downloads, bytes, files FROM link JOIN root ON root.number = link.root_number`;

type Row = [
  ...[id: string, owner: string, inodeId: InodeId, tokenHash: string, kind: LinkKind, password: string],
  ...[passKey: string, createdMs: number, endsMs: number, maxDownloads: number, maxBytes: number],
  ...[maxFiles: number, downloads: number, bytes: number, files: number],
];

/** See LinkStorage. */
export class LocalLinks implements LinkStorage {
  readonly #deps: {
    readonly tables: SnapshotTables;
    readonly queue: Pick<WriteQueue, "submit">;
    readonly nowMs: () => number;
  };
  readonly #byId: ReturnType<SnapshotTables["prepare"]>;
  readonly #ofRoot: ReturnType<SnapshotTables["prepare"]>;
  readonly #rootById: ReturnType<SnapshotTables["prepare"]>;

  constructor(deps: { tables: SnapshotTables; queue: Pick<WriteQueue, "submit">; nowMs: () => number }) {
    this.#deps = deps;
    this.#byId = deps.tables.prepare(`SELECT ${COLUMNS} WHERE link.id = ? AND ${IS_HERE}`);
    this.#ofRoot = deps.tables.prepare(
      `SELECT ${COLUMNS} WHERE owner = ? AND ${IS_HERE} ORDER BY created_ms, link.id`,
    );
    this.#rootById = deps.tables.prepare(`SELECT 1 FROM root WHERE root_id = ? AND ${IS_HERE}`);
  }

  byId(id: string): StoredLink | undefined {
    const row = this.#deps.tables.read(() => this.#byId.get(id) as unknown as Row | undefined);
    return row === undefined ? undefined : linkOf(row);
  }

  ofRoot(owner: string): readonly StoredLink[] {
    return this.#deps.tables.read(() => this.#ofRoot.all(owner) as unknown as Row[]).map(linkOf);
  }

  hasRoot(rootId: string): boolean {
    return this.#deps.tables.read(() => this.#rootById.get(rootId)) !== undefined;
  }

  async create(change: ChangeContext & NewLink): Promise<void> {
    await this.#deps.queue.submit({ op: "createLink", ...change, nowMs: this.#deps.nowMs() });
  }

  async revoke(owner: string, id: string): Promise<void> {
    await this.#deps.queue.submit({ op: "revokeLink", owner, id });
  }

  async countDownload(order: DownloadCount): Promise<void> {
    await this.#deps.queue.submit({ op: "countDownload", ...order, nowMs: this.#deps.nowMs() });
  }

  async claimDrop(order: DropClaim): Promise<void> {
    await this.#deps.queue.submit({ op: "claimDrop", ...order, nowMs: this.#deps.nowMs() });
  }

  async returnDrop(order: DropClaim): Promise<void> {
    await this.#deps.queue.submit({ op: "returnDrop", ...order });
  }
}

function linkOf(row: Row): StoredLink {
  const [id, owner, inodeId, tokenHash, kind, password, passKey, createdMs, endsMs, ...counts] = row;
  const [maxDownloads, maxBytes, maxFiles, downloads, bytes, files] = counts;
  const secrets = { tokenHash, password, passKey };
  const limits = { endsMs, maxDownloads, maxBytes, maxFiles };
  return { id, owner, inodeId, kind, createdMs, ...secrets, ...limits, downloads, bytes, files };
}
