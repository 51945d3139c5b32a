// The object store in memory as a process of the shared engine reaches it, below the product's own chunk writers.
import { GroveError } from "#base/errors.ts";
import { BLOCK_BYTES } from "#base/limits.ts";
import type { Random } from "#base/random.ts";
import type { ChunkBlocks } from "#storage/object-store/chunk-blocks.ts";
import { nameOfKey } from "#storage/object-store/chunk-blocks.ts";
import { ChunkNamesOfRoot } from "#storage/object-store/chunk-names-of-root.ts";
import type { ChunkReading } from "#storage/object-store/chunk-reads.ts";
import { ChunkRoom } from "#storage/object-store/chunk-room.ts";
import { ChunkPuts } from "#storage/object-store/object-chunk-writer.ts";
import type { ObjectStore } from "#storage/object-store/object-store.ts";
import { ObjectUpload } from "#storage/object-store/object-upload.ts";
import type { RequestBody } from "#storage/object-store/store-exchange.ts";
import type { StoreRequests } from "#storage/object-store/store-requests.ts";
import type { EngineDatabase } from "./database.ts";
import type { ProcessClock } from "./world.ts";

/** What a process needs of the store. */
export interface ObjectsDeps {
  readonly database: EngineDatabase;
  readonly clock: ProcessClock;
  readonly random: Random;
  /** A request, there and back. */
  readonly ask: <T>(run: () => T) => Promise<T>;
}

/** The store of one process. */
export function objectsOf({
  database,
  clock,
  random,
  ask,
}: ObjectsDeps): Pick<ObjectStore, "namesOf" | "reading" | "upload"> {
  const { chunks } = database.rows.stored;
  const reached = <T>(run: () => T): Promise<T> =>
    ask(run).catch((error: unknown) => {
      throw new GroveError("STORE_UNAVAILABLE", "the object store does not answer", { cause: error });
    });
  const requests = {
    putNew: async (key: string, body: RequestBody) => {
      const slices: Buffer[] = [];
      for await (const slice of body.slices()) slices.push(slice);
      const bytes = Buffer.concat(slices);
      await reached(() => chunks.set(nameOfKey("", key) ?? key, bytes));
      return { isCertain: true };
    },
    deleteMany: async (keys: readonly string[]) => {
      await reached(() => {
        for (const key of keys) chunks.delete(nameOfKey("", key) ?? key);
      });
      return new Map();
    },
  } as unknown as StoreRequests;
  const room = new ChunkRoom({ maySpill: () => false });
  const puts = new ChunkPuts({ requests, prefix: "", room, spillFolder: "", random });
  const blocks = {
    add: (block) => reached(() => database.addBlock(block)),
    drop: (id) => reached(() => void database.blocks.delete(id)),
    close: () => Promise.resolve(),
  } as Pick<ChunkBlocks, "add" | "close" | "drop"> as ChunkBlocks;
  return {
    namesOf: (rootId, epoch) => new ChunkNamesOfRoot({ blocks, rootId, epoch, random, clock }),
    upload: (upload) => new ObjectUpload({ puts, ...upload }),
    reading: () =>
      ({
        readBlock: async ({ name }: { name: string }, index: number) => {
          const bytes = await reached(() => chunks.get(name));
          if (bytes === undefined) throw new GroveError("CORRUPT", "the object is not there");
          return bytes.subarray(index * BLOCK_BYTES, (index + 1) * BLOCK_BYTES);
        },
        close: () => undefined,
      }) as unknown as ChunkReading,
  };
}
