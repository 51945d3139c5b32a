// Uploads of a rig: whole ones, and ones broken off at a random byte in seven ways.

import { crc32 } from "#os/crc32.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { reasonOf, type SignedIn } from "#prove/served-node.ts";
import { GrpcChannel, type SlicedUpload } from "#wire/grpc/client.ts";
import {
  FileServer,
  type UploadRequestSchema,
  type UploadResponseSchema,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";

/** How an upload is broken off. */
export const ABORTS = [
  "cancelled",
  "cancelled within a message",
  "wrong checksum",
  "wrong offset",
  "ended too early",
  "more than announced",
  "connection torn",
] as const;
/** One of them. */
export type Abort = (typeof ABORTS)[number];

/** Content and form of an upload. */
export interface UploadPlan {
  readonly root: string;
  readonly path: string;
  readonly bytes: Buffer;
  readonly sizeKnown: boolean;
  /** Undefined for a whole upload. */
  readonly abort: { readonly how: Abort; readonly atByte: number } | undefined;
}

type Stream = SlicedUpload<typeof UploadRequestSchema, typeof UploadResponseSchema>;

/** Resets before a connection is replaced: below the number that the server allows at once. */
const RESETS_PER_CONNECTION = 400;

/** Connections for streams that their client resets; each is left before the server would end it for that. */
export class ResetConnections {
  readonly #address: string;
  readonly #opened: GrpcChannel[] = [];
  #taken = 0;

  constructor(address: string) {
    this.#address = address;
  }

  take(): GrpcChannel {
    if (this.#taken++ % RESETS_PER_CONNECTION === 0)
      this.#opened.push(new GrpcChannel({ addresses: [this.#address] }));
    return this.#opened.at(-1) as GrpcChannel;
  }

  /** Opens a connection that is to be torn. */
  own(): GrpcChannel {
    return new GrpcChannel({ addresses: [this.#address] });
  }

  close(): void {
    for (const channel of this.#opened) channel.close();
  }
}

/** Runs one upload; returns "ok", the reason of its refusal, or "broken" when the client ended it. */
export async function runUpload(
  user: SignedIn,
  resets: ResetConnections,
  plan: UploadPlan,
  random: SeededRandom,
): Promise<string> {
  const torn = plan.abort?.how === "connection torn" ? resets.own() : undefined;
  const channel = torn ?? (plan.abort === undefined ? random.pick(user.channels) : resets.take());
  try {
    const stream = await channel.slicedUpload(FileServer.method.uploadFile, "chunk.data", user);
    await sendHeader(stream, plan);
    if (plan.abort === undefined) return await sendWhole(stream, plan, random);
    return await sendPart(stream, plan, plan.abort, torn, random);
  } catch (error) {
    return reasonOf(error);
  } finally {
    torn?.close();
  }
}

async function sendHeader({ writer }: Stream, plan: UploadPlan): Promise<void> {
  const { root, path, sizeKnown, bytes } = plan;
  const size = sizeKnown ? BigInt(bytes.length) : 0n;
  await writer.message({ part: { case: "header", value: { root, path, size, sizeKnown } } }, 0);
}

async function sendWhole(stream: Stream, { bytes }: UploadPlan, random: SeededRandom): Promise<string> {
  await ignoringTheEnd(sendChunks(stream, bytes, 0, random));
  await stream.finish();
  return "ok";
}

async function sendPart(
  stream: Stream,
  { bytes, sizeKnown }: UploadPlan,
  { how, atByte }: { how: Abort; atByte: number },
  torn: GrpcChannel | undefined,
  random: SeededRandom,
): Promise<string> {
  const before = bytes.subarray(0, atByte);
  const rest = bytes.subarray(atByte, atByte + 1_000);
  if (how === "cancelled within a message") {
    await ignoringTheEnd(sendWithin(stream, bytes, atByte));
    stream.cancel();
    return "broken";
  }
  await ignoringTheEnd(sendChunks(stream, before, 0, random));
  if (how === "cancelled" || how === "connection torn" || (how === "ended too early" && !sizeKnown)) {
    await new Promise((resolve) => setImmediate(resolve));
    if (torn !== undefined) torn.close();
    else stream.cancel();
    return "broken";
  }
  if (how === "wrong checksum") await ignoringTheEnd(sendChunk(stream, rest, atByte, 1));
  if (how === "wrong offset") await ignoringTheEnd(sendChunk(stream, rest, atByte + 1, 0));
  if (how === "more than announced") {
    const more = Buffer.alloc(bytes.length - atByte + 1);
    // Without an announced size nothing is too much: then its checksum is wrong.
    await ignoringTheEnd(sendChunk(stream, more, atByte, sizeKnown ? 0 : 1));
  }
  await stream.finish();
  return "ok";
}

/** Sends a message up to the cut. */
async function sendWithin(stream: Stream, bytes: Buffer, atByte: number): Promise<void> {
  const value = { offset: 0n };
  await stream.writer.message({ part: { case: "chunk", value } }, bytes.length);
  if (atByte > 0) await stream.writer.slice(bytes.subarray(0, atByte));
  await new Promise((resolve) => setImmediate(resolve));
}

async function sendChunks(stream: Stream, bytes: Buffer, from: number, random: SeededRandom): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const length = Math.min(bytes.length - at, random.between(1, random.chance(0.5) ? 65_536 : 1_000_000));
    await sendChunk(stream, bytes.subarray(at, at + length), from + at, 0);
    at += length;
  }
}

async function sendChunk(stream: Stream, data: Buffer, offset: number, crcError: number): Promise<void> {
  const value = { offset: BigInt(offset), crc32: (crc32(data) ^ crcError) >>> 0 };
  await stream.writer.message({ part: { case: "chunk", value } }, data.length);
  await stream.writer.slice(data);
}

/**
 * Ignores the end of sending: a server that has answered takes no more, and the call's end has its answer.
 */
async function ignoringTheEnd(sending: Promise<void>): Promise<void> {
  await sending.catch((error: unknown) => void reasonOf(error));
}
