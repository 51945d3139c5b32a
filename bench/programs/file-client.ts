// The load on a FileServer: one signed-in user, the client's own transfer code, and the rows' calls.
import { setImmediate as turnEnd } from "node:timers/promises";
import { toBinary } from "@bufbuild/protobuf";
import { CHUNK_BYTES } from "#base/limits.ts";
import { trustedAuthority } from "#bench/certificates.ts";
import { callsPerSecond, mibPerSecond, perSecond } from "#bench/pump.ts";
import { TakenTimes } from "#bench/taken-times.ts";
import { serveTasks } from "#bench/tasks.ts";
import type { Server } from "#client/connection/cluster.ts";
import { downloadFile } from "#client/transfer/download.ts";
import { uploadChunks } from "#client/transfer/upload.ts";
import { crc32 } from "#os/crc32.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import type { Attr } from "#wire/proto/gen/grove/v1/common_pb.ts";
import {
  FileServer,
  type ListDirResponse,
  ListDirResponseSchema,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { type DecodedListing, decodeListing, REPLY_DECODERS } from "#wire/proto/listing-decoder.ts";

/** Below the 100 streams that one connection may have. */
const STREAMS_PER_CHANNEL = 32;
const channels: GrpcChannel[] = [];
let server: Server | undefined;
let lastListing: readonly (readonly Attr[])[] = [];
let lastReplies: readonly ListDirResponse[] = [];
let address = "";
let metadata: Record<string, string> = {};
/** Sessions of further users. */
let others: Record<string, string>[] = [];
let times = new TakenTimes();

serveTasks(
  {
    connect: async (input) => {
      const { owner, ...rest } = input as { address: string; owner: string };
      address = rest.address;
      const channel = openChannel();
      const files = createClient(FileServer, channel, REPLY_DECODERS);
      metadata = await signIn(owner, files);
      others = [];
      server = {
        address,
        username: owner,
        channel,
        files,
        unary: { metadata },
        stream: { metadata },
        progressed: ignore,
      };
      return null;
    },
    up: async (input) => {
      const { path, bytes } = input as { path: string; bytes: number };
      const start = performance.now();
      const target = { root: "", path, sizeBytes: bytes, mtimeMs: 0 };
      const reply = await uploadChunks(connected(), chunksOf(bytes), target, ignore);
      if (reply.bytesWritten !== BigInt(bytes)) throw new Error("the server counted other bytes");
      return mibPerSecond(bytes, start);
    },
    down: async (input) => {
      const { path, bytes } = input as { path: string; bytes: number };
      const start = performance.now();
      await receive(path, bytes);
      return mibPerSecond(bytes, start);
    },
    makeFolder: async (path) => {
      await connected().files.createDirectory({ path: String(path) }, connected().unary);
      return null;
    },
    remove: async (path) => {
      await connected().files.deleteFile({ path: String(path) }, connected().unary);
      return null;
    },
    // Files of the given size in the folders in turn.
    create: (input) => {
      const many = input as ManyFiles;
      const data = Buffer.alloc(many.bytes, 0xa5);
      const { files, unary } = connected();
      times = new TakenTimes();
      return eachFile(many, (path) => times.of(() => files.createFile({ path, data }, unary)));
    },
    // Signs further users in.
    connectOthers: async (owners) => {
      for (const owner of owners as readonly string[]) others.push(await signIn(owner));
      return null;
    },
    // The same by all of the further users in turn, in their roots.
    createByOthers: (input) => {
      const many = input as ManyFiles;
      const data = Buffer.alloc(many.bytes, 0xa5);
      const { files } = connected();
      times = new TakenTimes();
      return callsPerSecond(many.files, many.inFlight, (at) => {
        const path = `/${many.prefix}-${at}`;
        return times.of(() => files.createFile({ path, data }, { metadata: others[at % others.length]! }));
      });
    },
    slowest: () => times.p99Ms,
    // The same by UploadFile: header, one chunk, end.
    uploadLoop: (input) => {
      const many = input as ManyFiles;
      const data = Buffer.alloc(many.bytes, 0xa5);
      const crc = crc32(data);
      return eachFile(many, (path) => uploadOne(path, data, crc));
    },
    // DownloadFile calls; received bytes are counted and dropped.
    downloadLoop: (input) => {
      const many = input as ManyFiles;
      return eachFile(many, (path) => receive(path, many.bytes));
    },
    getAttr: (input) => {
      const { paths, calls, inFlight } = input as Looks;
      const { files: client, unary } = connected();
      return callsPerSecond(calls, inFlight, async (at) => {
        const attr = await client.getAttr({ path: paths[at % paths.length]! }, unary);
        if (attr.id === "") throw new Error("no attributes came");
      });
    },
    // Whole small files by ReadFile, as many bytes as each has.
    readFile: (input) => {
      const { paths, calls, inFlight, bytes } = input as Looks & { bytes: number };
      const { files: client, unary } = connected();
      return callsPerSecond(calls, inFlight, async (at) => {
        const { data } = await client.readFile({ path: paths[at % paths.length]! }, unary);
        if (data.length !== bytes) throw new Error(`${data.length} bytes came`);
      });
    },
    // A folder into the trash and out of it, one after the other; answers the rate per second.
    trashAndRestore: async (input) => {
      const { path, times } = input as { path: string; times: number };
      const { files: client, unary } = connected();
      return callsPerSecond(times, 1, async () => {
        const { item } = await client.trashFile({ path }, unary);
        await client.restoreFile({ trashId: item?.trashId ?? "" }, unary);
      });
    },
    // Whole listings a second, page after page, every entry decoded.
    list: async (input) => {
      const { path, listings, entries } = input as { path: string; listings: number; entries: number };
      const start = performance.now();
      for (let done = 0; done < listings; done += 1) lastListing = await listing(path);
      const found = lastListing.reduce((sum, page) => sum + page.length, 0);
      if (found !== entries) throw new Error(`${found} entries came`);
      return perSecond(listings, start);
    },
    // The same replies, fetched in the ordinary way, serialised as often.
    serialise: async (input) => {
      const { path, times } = input as { path: string; times: number };
      if (lastReplies.length === 0) lastReplies = await plainListing(path);
      const start = performance.now();
      for (let done = 0; done < times; done += 1) {
        for (const page of lastReplies) toBinary(ListDirResponseSchema, page);
      }
      return perSecond(times, start);
    },
    // Starts downloads, reads nothing of them, and leaves them open.
    stickDownloads: async (input) => {
      const { path, count } = input as { path: string; count: number };
      const stuck = Array.from({ length: count }, (_, at) =>
        channelFor(at).slicedDownload(FileServer.method.downloadFile, "chunk.data", { path }, { metadata }),
      );
      // Only the attributes, which come first: then each is known to have begun.
      await Promise.all(stuck.map(async (download) => download.next()));
      return null;
    },
    uploadMany: async (input) => {
      const { folder, count, bytes } = input as { folder: string; count: number; bytes: number };
      const start = performance.now();
      await Promise.all(
        Array.from({ length: count }, (_, at) => {
          const target = { root: "", path: `${folder}/upload-${at}`, sizeBytes: bytes, mtimeMs: 0 };
          const over = { ...connected(), channel: channelFor(count + at) };
          return uploadChunks(over, chunksOf(bytes), target, ignore);
        }),
      );
      return mibPerSecond(count * bytes, start);
    },
  },
  () => {
    for (const channel of channels) channel.close();
  },
);

function openChannel(): GrpcChannel {
  const ca = trustedAuthority();
  const channel = new GrpcChannel(
    ca === undefined ? { addresses: [address] } : { addresses: [address], tls: { ca } },
  );
  channels.push(channel);
  return channel;
}

/** The connection for the n-th of many streams. */
function channelFor(at: number): GrpcChannel {
  const index = 1 + Math.floor(at / STREAMS_PER_CHANNEL);
  while (channels.length <= index) openChannel();
  return channels[index]!;
}

/** The headers of a new session. */
async function signIn(owner: string, files = connected().files): Promise<Record<string, string>> {
  const session = await files.registerClient(
    { clientId: "bench", clientVersion: "0", deviceName: "bench" },
    { metadata: { authorization: `Bearer mock-jwt.${owner}` } },
  );
  return { authorization: `Bearer ${session.sessionToken}` };
}

function connected(): Server {
  if (server === undefined) throw new Error("not connected");
  return server;
}

/** Calls that take the paths in turn. */
type Looks = { readonly paths: readonly string[]; readonly calls: number; readonly inFlight: number };

/** Files of one size that lie in the folders in turn. */
type ManyFiles = {
  readonly folders: readonly string[];
  readonly prefix: string;
  readonly files: number;
  readonly inFlight: number;
  readonly bytes: number;
};

function eachFile(
  { folders, prefix, files, inFlight }: ManyFiles,
  call: (path: string) => Promise<unknown>,
): Promise<number> {
  return callsPerSecond(files, inFlight, (at) => call(`${folders[at % folders.length]}/${prefix}-${at}`));
}

/** Counts the received bytes and drops them. */
async function receive(path: string, bytes: number): Promise<void> {
  let received = 0;
  await downloadFile(connected(), { root: "", path }, (slice) => {
    received += slice.length;
    return true;
  });
  if (received !== bytes) throw new Error("other bytes came than were asked for");
}

async function uploadOne(path: string, data: Buffer, crc: number): Promise<void> {
  const { channel, stream } = connected();
  const upload = await channel.slicedUpload(FileServer.method.uploadFile, "chunk.data", stream);
  const header = { path, size: BigInt(data.length), sizeKnown: true };
  await upload.writer.message({ part: { case: "header", value: header } }, 0);
  const chunk = { offset: 0n, crc32: crc };
  await upload.writer.message({ part: { case: "chunk", value: chunk } }, data.length);
  await upload.writer.slice(data);
  await upload.finish();
}

async function* chunksOf(bytes: number): AsyncGenerator<Buffer> {
  const content = Buffer.alloc(CHUNK_BYTES, 0xa5);
  for (let left = bytes; left > 0; left -= CHUNK_BYTES)
    yield content.subarray(0, Math.min(CHUNK_BYTES, left));
}

function ignore(): void {
  // Progress is for people.
}

/** Every page, requested while the page before is decoded, as in the client's own listing. */
async function listing(path: string): Promise<(readonly Attr[])[]> {
  const { channel, unary } = connected();
  const read = async (pageToken: string): Promise<DecodedListing> => {
    const request = { path, pageSize: 1_000, pageToken };
    return decodeListing(await channel.unaryBytes(FileServer.method.listDir, request, unary));
  };
  const pages: (readonly Attr[])[] = [];
  for (let coming: Promise<DecodedListing> | undefined = read(""); coming !== undefined; ) {
    const page: DecodedListing = await coming;
    coming = page.nextPageToken === "" ? undefined : read(page.nextPageToken);
    await turnEnd();
    pages.push(page.entries());
  }
  return pages;
}

async function plainListing(path: string): Promise<ListDirResponse[]> {
  const pages: ListDirResponse[] = [];
  let pageToken = "";
  do {
    const page = await connected().files.listDir({ path, pageSize: 1_000, pageToken }, connected().unary);
    pages.push(page);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return pages;
}
