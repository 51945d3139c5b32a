// Resumable uploads of browsers: the core of tus 1.0 with creation and termination, over BeginUpload (D29).
import { GroveError, isGroveError, UPLOAD_ENDING_CODES } from "#base/errors.ts";
import { ONCE, SHORT } from "#client/connection/cluster.ts";
import { attrIfThere } from "#client/connection/listing.ts";
import { uploadChunks } from "#client/transfer/upload.ts";
import type { PageExchange } from "#door/http/pages.ts";
import { inputOf } from "#door/tree/body.ts";
import { headerOf } from "#door/webdav/conditions.ts";
import { DavRefusal } from "#door/webdav/status-table.ts";
import { OnExists } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { type PageCall, placeOf, sendNothing } from "./call.ts";
import { changedOf } from "./content.ts";

/** Where uploads are. */
export const UPLOADS_PATH = "/api/uploads";
/** Characters of an upload's id in an address. */
const ID_MAX_LENGTH = 8_192;
const VERSION = "1.0.0";

/** An upload as its address names it. The FileServer knows whose it is, and lets in only them. */
interface UploadName {
  readonly root: string;
  readonly path: string;
  readonly id: string;
  readonly size: number;
  readonly replaces: boolean;
  readonly changedMs: number;
}

/** Answers a request at or below UPLOADS_PATH. */
export async function answerUpload(call: PageCall): Promise<void> {
  const { exchange } = call;
  exchange.setHeader("tus-resumable", VERSION);
  if (headerOf(exchange.headers, "tus-resumable") !== VERSION) {
    exchange.setHeader("tus-version", VERSION);
    throw new DavRefusal(412, `uploads speak tus ${VERSION}`);
  }
  if (exchange.path === UPLOADS_PATH) {
    if (exchange.method !== "POST") throw new DavRefusal(405, "an upload begins by POST");
    return await begin(call);
  }
  const name = readName(exchange.path.slice(UPLOADS_PATH.length + 1));
  switch (exchange.method) {
    case "HEAD":
      return sendOffset(exchange, (await lookAt(call, name)).offset, name.size, 200);
    case "PATCH":
      return await take(call, name);
    case "DELETE":
      return await abort(call, name);
    default:
      throw new DavRefusal(405, "an upload knows HEAD, PATCH and DELETE");
  }
}

async function begin({ exchange, person }: PageCall): Promise<void> {
  const { root, path } = placeOf(exchange);
  const size = numberIn(exchange, "upload-length");
  if (!Number.isSafeInteger(size) || size < 1)
    throw new DavRefusal(400, "Upload-Length has to tell the file's size");
  const replaces = exchange.query.get("exists") === "replace";
  const changedMs = changedOf(exchange.query.get("changed"));
  const request = {
    root,
    path,
    size: BigInt(size),
    onExists: replaces ? OnExists.REPLACE : OnExists.FAIL,
    mtimeMs: BigInt(changedMs),
  };
  const { uploadId: id } = await person.cluster.runAt({ root, path }, ONCE, (server) =>
    server.files.beginUpload(request, server.unary),
  );
  // A browser that has gone learns no address of it, and would not come back to it.
  if (exchange.destroyed) return await end(person, root, id).catch(() => undefined);
  const name = writeName({ root, path, id, size, replaces, changedMs });
  exchange.setHeader("location", `${UPLOADS_PATH}/${name}`);
  exchange.setHeader("upload-offset", 0);
  sendNothing(exchange, 201);
}

/**
 * Takes bytes from an offset on; none at the full size make the file of what is there, where that failed before.
 * What of them is safe when the connection breaks, HEAD tells afterwards.
 */
async function take(call: PageCall, name: UploadName): Promise<void> {
  const { exchange, person } = call;
  if (headerOf(exchange.headers, "content-type") !== "application/offset+octet-stream")
    throw new DavRefusal(415, "the body has to be application/offset+octet-stream");
  const offset = numberIn(exchange, "upload-offset");
  const { offset: safe, hasArrived } = await lookAt(call, name);
  if (offset !== safe) throw new GroveError("OFFSET_MISMATCH", `the upload goes on at byte ${safe}`);
  if (hasArrived) return sendOffset(exchange, safe, name.size, 204);
  const { root, path, id: uploadId, size, replaces, changedMs } = name;
  const body = new BodyUntil(exchange, size - offset);
  await using input = inputOf(body);
  try {
    await person.cluster.runAt({ root, path }, input, (server) =>
      uploadChunks(
        server,
        input,
        {
          root,
          path,
          sizeBytes: size,
          mtimeMs: changedMs,
          onExists: replaces ? OnExists.REPLACE : OnExists.FAIL,
          resume: { uploadId, offset },
        },
        () => undefined,
      ),
    );
  } catch (error) {
    // The FileServer refuses a part as a whole file, once what has come of it is safe.
    if (!body.isPart() || isGroveError(error, ...UPLOAD_ENDING_CODES)) throw error;
    return sendOffset(exchange, (await lookAt(call, name)).offset, size, 204);
  }
  sendOffset(exchange, size, size, 204);
}

/** The number of a header, NaN for anything but decimal digits. */
function numberIn({ headers }: PageExchange, name: string): number {
  const text = headerOf(headers, name) ?? "";
  return /^\d{1,16}$/u.test(text) ? Number(text) : Number.NaN;
}

async function abort({ exchange, person }: PageCall, { root, id }: UploadName): Promise<void> {
  await end(person, root, id);
  sendNothing(exchange);
}

async function end({ cluster }: PageCall["person"], root: string, uploadId: string): Promise<void> {
  await cluster.run(root, ONCE, (server) => server.files.abortUpload({ root, uploadId }, server.unary));
}

/** How far an upload is. */
interface UploadLook {
  /** Bytes on stable storage. */
  readonly offset: number;
  /** True once they are the file; all of them may be there before. */
  readonly hasArrived: boolean;
}

/** Looks how far it is; one that has arrived is known by its file, since its answer may be lost. */
async function lookAt({ person }: PageCall, name: UploadName): Promise<UploadLook> {
  const { root, path, id: uploadId, size, changedMs } = name;
  try {
    const upload = await person.cluster.run(root, SHORT, (server) =>
      server.files.getUpload({ root, uploadId }, server.unary),
    );
    return { offset: Number(upload.offset), hasArrived: false };
  } catch (error) {
    if (!isGroveError(error, "NO_SUCH_UPLOAD")) throw error;
    const attr = changedMs === 0 ? undefined : await attrIfThere(person.cluster, { root, path });
    if (attr?.size === BigInt(size) && attr.mtimeMs === BigInt(changedMs))
      return { offset: size, hasArrived: true };
    throw new DavRefusal(410, "this upload is over: begin it again");
  }
}

function sendOffset(exchange: PageExchange, offset: number, size: number, status: number): void {
  exchange.setHeader("upload-offset", offset);
  exchange.setHeader("upload-length", size);
  sendNothing(exchange, status);
}

function writeName({ root, path, id, size, replaces, changedMs }: UploadName): string {
  return Buffer.from(JSON.stringify([root, path, id, size, replaces, changedMs])).toString("base64url");
}

function readName(text: string): UploadName {
  let value: unknown;
  try {
    value = text.length > ID_MAX_LENGTH ? undefined : JSON.parse(Buffer.from(text, "base64url").toString());
  } catch {
    value = undefined;
  }
  const [root, path, id, size, replaces, changedMs] = Array.isArray(value) ? (value as unknown[]) : [];
  if (
    typeof root !== "string" ||
    typeof path !== "string" ||
    typeof id !== "string" ||
    !Number.isSafeInteger(size) ||
    Number(size) < 1 ||
    typeof replaces !== "boolean" ||
    !Number.isSafeInteger(changedMs)
  )
    throw new DavRefusal(404, "there is no such upload");
  return { root, path, id, size: Number(size), replaces, changedMs: Number(changedMs) };
}

/**
 * A body that ends where its connection breaks: a stream that ends lets the FileServer keep what has come, and
 * one that is cut off loses what is on its way.
 */
class BodyUntil implements AsyncIterable<Uint8Array> {
  readonly #body: AsyncIterable<Uint8Array>;
  readonly #needed: number;
  #taken = 0;
  #isRead = false;
  #failure: { readonly error: unknown } | undefined;

  constructor(body: AsyncIterable<Uint8Array>, needed: number) {
    this.#body = body;
    this.#needed = needed;
  }

  /** True for a body that was a part of the file and no more. Throws what has cut it off. */
  isPart(): boolean {
    if (this.#failure !== undefined) throw this.#failure.error;
    return this.#taken < this.#needed && this.#isRead;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for await (const part of this.#body) {
        this.#taken += part.length;
        if (this.#taken > this.#needed) break;
        yield part;
      }
      this.#isRead = true;
    } catch (error) {
      this.#failure = { error };
    }
    if (this.#taken > this.#needed) throw new DavRefusal(413, "the body has more bytes than the file");
  }
}
