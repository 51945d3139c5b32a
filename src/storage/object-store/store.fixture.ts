// What the tests of the object store share: a client of a real store, through a proxy that spoils requests.
import { systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { systemFraction, systemRandom } from "#base/random.ts";
import { crc32 } from "#os/crc32.ts";
import type { NewChunk } from "#storage/chunks/chunk-writer.ts";
import { ContentWriter, type WholeChunk } from "#storage/chunks/content-writer.ts";
import type { ObjectStoreKind, TestStore } from "#testing/object-stores.ts";
import { startStore } from "#testing/object-stores.ts";
import type { ChunkRows } from "./chunk-blocks.fixture.ts";
import type { ChunkBlocks } from "./chunk-blocks.ts";
import { ChunkNamesOfRoot } from "./chunk-names-of-root.ts";
import { ChunkRoom, type ChunkRoomLimits } from "./chunk-room.ts";
import { ChunkPuts, type ObjectChunkWriter } from "./object-chunk-writer.ts";
import { AHEAD_OF_STORE, ObjectUpload } from "./object-upload.ts";
import { bytesBody, S3Client } from "./s3-client.ts";
import { CredentialsFile } from "./store-credentials.ts";
import type { RequestBody, StorePatience } from "./store-exchange.ts";
import { StoreProxy } from "./store-proxy.fixture.ts";
import { StoreRequests } from "./store-requests.ts";
import { storeSettings } from "./store-settings.ts";

/** A store, the proxy before it, and requests through both. */
export interface ProxiedStore {
  readonly store: TestStore;
  readonly proxy: StoreProxy;
  readonly client: S3Client;
  readonly requests: StoreRequests;
  /** Another client of the same store. */
  another(patience?: StorePatience): StoreRequests;
}

type CleanUp = (end: () => Promise<void>) => void;

/** Starts a store and its proxy. */
export async function proxiedStore(kind: ObjectStoreKind, cleanUp: CleanUp): Promise<ProxiedStore> {
  const store = await startStore(kind, cleanUp);
  const proxy = new StoreProxy(store.port);
  await proxy.start(cleanUp);
  const another = (patience?: StorePatience): StoreRequests => {
    const client = clientOf(store, `http://127.0.0.1:${proxy.port}`, patience);
    cleanUp(async () => client.close());
    return new StoreRequests({ client, clock: systemClock, fraction: systemFraction, logger: silentLogger });
  };
  const requests = another();
  return { store, proxy, client: requests.client, requests, another };
}

/** A client of a store at an endpoint. */
export function clientOf(
  store: TestStore,
  endpoint: string,
  patience?: StorePatience,
  ca?: string,
): S3Client {
  const query = new URLSearchParams({ endpoint, credentials: store.credentialsFile });
  const settings = storeSettings(`s3://${store.bucket}/here?${query.toString()}`);
  const credentials = new CredentialsFile({
    path: settings.credentialsFile,
    clock: systemClock,
    logger: silentLogger,
  });
  const more = patience === undefined ? {} : { patience };
  return new S3Client({ settings, credentials, ca, clock: systemClock, ...more });
}

/** Bytes that differ everywhere, and what a PUT needs of them. */
export function content(byteCount: number, seed = 1): { bytes: Buffer; body: RequestBody; crc: number } {
  const bytes = Buffer.alloc(byteCount);
  let state = seed;
  for (let at = 0; at < byteCount; at++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    bytes[at] = state >>> 16;
  }
  return { bytes, body: bytesBody([bytes], byteCount), crc: crc32(bytes) };
}

/** What writers of chunks share, with room for few or many. */
export function putsOf({ requests }: ProxiedStore, folder: string, limits?: ChunkRoomLimits): ChunkPuts {
  const room = new ChunkRoom({ maySpill: () => true, ...(limits === undefined ? {} : { limits }) });
  return new ChunkPuts({ requests, prefix: PREFIX, room, spillFolder: folder, random: systemRandom });
}

/** Prefix of the objects in tests. */
export const PREFIX = "here/";

/** Names for a root under an epoch. */
export function namesOf(blocks: ChunkBlocks, epoch = 1): ChunkNamesOfRoot {
  return new ChunkNamesOfRoot({ blocks, rootId: "root", epoch, random: systemRandom, clock: systemClock });
}

/** An upload under way. */
export interface TestUpload {
  readonly writer: ContentWriter<ObjectChunkWriter>;
  readonly chunks: WholeChunk<ObjectChunkWriter>[];
  /** Whatever went wrong. */
  readonly errors: unknown[];
  /** Sends bytes as a stream does, with its waits. */
  send(bytes: Buffer): Promise<void>;
  /** Ends the content. Resolves with its chunks' rows once the store has all of them. */
  finish(): Promise<NewChunk[]>;
}

/** Begins an upload of a user. */
export function beginUpload(puts: ChunkPuts, names: ChunkNamesOfRoot, user = "ann@example.com"): TestUpload {
  const upload = new ObjectUpload({ puts, names, user, sizeBytes: undefined });
  const chunks: WholeChunk<ObjectChunkWriter>[] = [];
  const errors: unknown[] = [];
  const writer = new ContentWriter<ObjectChunkWriter>({
    budget: upload,
    sizeBytes: undefined,
    ahead: AHEAD_OF_STORE,
    begin: (position) => upload.chunk(position),
    ended: (chunk) => chunks.push(chunk),
    failed: (error) => errors.push(error),
  });
  return {
    writer,
    chunks,
    errors,
    send: async (bytes) => {
      for (let at = 0; at < bytes.length; at += 65_536) {
        if (errors.length > 0) throw errors[0];
        await writer.write(bytes.subarray(at, at + 65_536));
      }
    },
    finish: async () => {
      writer.end();
      await Promise.all(chunks.map(({ durable }) => durable));
      writer.close();
      return chunks.map(({ file, checksums }) => file.record(checksums));
    },
  };
}

/** Uploads bytes, gives their chunks rows, and returns these. */
export async function stored(
  puts: ChunkPuts,
  rows: ChunkRows,
  names: ChunkNamesOfRoot,
  bytes: Buffer,
): Promise<NewChunk[]> {
  const upload = beginUpload(puts, names);
  await upload.send(bytes);
  const chunks = await upload.finish();
  for (const { name, length } of chunks) rows.commit(name, length);
  for (const { file } of upload.chunks) file.settle();
  return chunks;
}
