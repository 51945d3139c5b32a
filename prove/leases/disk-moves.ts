// Moves of a node with disks of its own: the product's, with chunk files kept in memory.
import { GroveError } from "#base/errors.ts";
import { crc32 } from "#os/crc32.ts";
import type { MoveBucket, MovedChunk, MoveReceipt } from "#storage/contract/root-move.ts";
import { LocalMoves, type LocalMovesDeps } from "#storage/local/local-moves.ts";
import { chunksOf } from "#storage/metadata/move-rows.ts";
import type { Command } from "#storage/writer/write-commands.ts";
import type { StoredRoots } from "./stored-roots.ts";

/** How long the disk takes for a change. */
const FLUSH_MS = 5;

/** See RootMoveStorage. */
export class DiskMoves extends LocalMoves {
  readonly #stored: StoredRoots;
  readonly #landed = new Map<string, Buffer>();

  constructor(stored: StoredRoots, wait: (ms: number) => Promise<void>) {
    const prepare = (sql: string): ReturnType<StoredRoots["db"]["prepare"]> => {
      const statement = stored.db.prepare(sql);
      statement.setReturnArrays(true);
      return statement;
    };
    super({
      queue: {
        submit: async (command: Command) => {
          const reply = stored.submit(command);
          await wait(FLUSH_MS);
          return reply;
        },
      },
      tables: { prepare, read: <T>(read: () => T) => read() },
      store: { flushDirectoriesOf: async () => undefined },
      sharesChanged: () => undefined,
    } as unknown as LocalMovesDeps);
    this.#stored = stored;
  }

  override async readChunk(_moveId: string, name: string): Promise<Buffer | undefined> {
    return this.#stored.chunks.get(name);
  }

  override async missingChunks(moveId: string, buckets: readonly MoveBucket[]): Promise<MovedChunk[]> {
    const missing = await super.missingChunks(moveId, buckets);
    return missing.filter(({ name }) => !this.#landed.has(name));
  }

  override async putChunk(_moveId: string, { name, crc32: sum }: MovedChunk, bytes: Buffer): Promise<void> {
    if (crc32(bytes) !== sum)
      throw new GroveError("CHECKSUM_MISMATCH", "a chunk did not arrive as it was sent");
    this.#landed.set(name, bytes);
  }

  override async putBuckets(moveId: string, buckets: readonly MoveBucket[]): Promise<readonly MoveReceipt[]> {
    for (const name of chunksOf(buckets).keys()) {
      const bytes = this.#landed.get(name);
      if (bytes !== undefined) this.#stored.chunks.set(name, bytes);
    }
    return super.putBuckets(moveId, buckets);
  }
}
