// A PUT's body into a file: small ones by one call, others as a stream, refusals before the body where that is possible.
import { type ErrorMetadata, GroveError, isGroveError } from "#base/errors.ts";
import { INLINE_FILE_MAX_BYTES } from "#base/limits.ts";
import { type Cluster, ONCE, type Server, SHORT } from "#client/connection/cluster.ts";
import type { RemotePath } from "#client/connection/remote-path.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { uploadChunks } from "#client/transfer/upload.ts";
import type { NewFile, SubmittedTokens, WriteWish } from "#door/webdav/resource.ts";
import { crc32 } from "#os/crc32.ts";
import { type Attr, OnExists, Perm } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { errorCodeOf } from "#wire/proto/status-table.ts";
import { inputOf } from "./body.ts";
import { shownTokens } from "./shown-tokens.ts";

/** One PUT. */
interface Writing {
  readonly body: AsyncIterable<Uint8Array>;
  readonly wish: WriteWish;
  readonly tokens: SubmittedTokens;
}

/** Writes a whole file: all of the body, or nothing. */
export async function writeFile(cluster: Cluster, place: RemotePath, writing: Writing): Promise<Attr> {
  const { wish, tokens } = writing;
  const { size } = wish;
  const isSmall = size !== undefined && size <= INLINE_FILE_MAX_BYTES && wish.ifMatch === undefined;
  // A small body that comes anyway is refused no later, and without another call.
  if (!isSmall || wish.awaitsContinue === true) {
    await askRoom(cluster, place, BigInt(size ?? wish.expectedBytes ?? 0), writing.tokens);
  }
  if (isSmall) return await writeSmall(cluster, place, writing, size);
  await using input = inputOf(writing.body);
  return await cluster.runAt(place, input, (server) =>
    upload(shownTokens(server, tokens), place, wish, input),
  );
}

/** Throws what a write of so many bytes would be refused with, before any of them is taken. */
export async function askRoom(
  cluster: Cluster,
  { root, path }: RemotePath,
  addBytes: bigint,
  tokens: SubmittedTokens,
): Promise<void> {
  const question = { root, path, permission: Perm.WRITE, addBytes };
  const { allowed, reason, message, metadata } = await cluster.run(root, SHORT, (server) =>
    server.files.explain(question, shownTokens(server, tokens).unary),
  );
  if (allowed) return;
  const details: ErrorMetadata = metadata;
  throw new GroveError(errorCodeOf(reason) ?? "INTERNAL", message, { metadata: details });
}

/** A body that fits into one call, which is enough for a new file. */
async function writeSmall(
  cluster: Cluster,
  place: RemotePath,
  { body, wish, tokens }: Writing,
  size: number,
): Promise<Attr> {
  const data = await whole(body, size);
  const file = { data, changedMs: wish.changedMs, tokens };
  const { mustBeNew } = wish;
  const made = wish.isThere === true ? undefined : await createFile(cluster, place, file, mustBeNew);
  if (made !== undefined) return made;
  return await cluster.runAt(place, mustBeNew ? ONCE : SHORT, (server) =>
    upload(shownTokens(server, tokens), place, wish, oneBlock(data)),
  );
}

/**
 * Makes a new file by one call; undefined, and nothing is made, where something is there or no folder for it. Where
 * it need not be new, a call without an answer is made again: what is there then may be its own.
 */
export async function createFile(
  cluster: Cluster,
  place: RemotePath,
  { data, changedMs, tokens }: NewFile,
  mustBeNew = false,
): Promise<Attr | undefined> {
  const { root, path } = place;
  const request = { root, path, data, mtimeMs: BigInt(changedMs), crc32: crc32(data) };
  try {
    return await cluster.runAt(place, mustBeNew ? ONCE : SHORT, (server) =>
      server.files.createFile(request, shownTokens(server, tokens).unary),
    );
  } catch (error) {
    if (isGroveError(error, "PATH_EXISTS", "NO_SUCH_PATH", "NOT_DIRECTORY")) return undefined;
    throw error;
  }
}

async function upload(
  server: Server,
  place: RemotePath,
  wish: WriteWish,
  blocks: AsyncIterable<readonly Buffer[]>,
): Promise<Attr> {
  const target = {
    ...place,
    sizeBytes: wish.size,
    mtimeMs: wish.changedMs,
    onExists: wish.mustBeNew ? OnExists.FAIL : OnExists.REPLACE,
    ...(wish.ifMatch === undefined ? {} : { ifMatch: wish.ifMatch }),
  };
  const { attr } = await uploadChunks(server, blocks, target, () => undefined);
  if (attr === undefined)
    throw new ClientError("SERVER_BROKEN", `${place.path}: the server told no attributes`);
  return attr;
}

async function* oneBlock(data: Buffer): AsyncGenerator<readonly Buffer[], void, undefined> {
  if (data.length > 0) yield [data];
}

async function whole(body: AsyncIterable<Uint8Array>, size: number): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body) {
    bytes += part.length;
    if (bytes > size) break;
    parts.push(part);
  }
  if (bytes !== size)
    throw new GroveError("BAD_ARGUMENT", `the body has not the ${size} bytes that were announced`);
  return Buffer.concat(parts, bytes);
}
