// GET, HEAD and PUT.
import { randomBytes } from "node:crypto";
import { isGroveError } from "#base/errors.ts";
import { INLINE_FILE_MAX_BYTES } from "#base/limits.ts";
import { type ByteRange, readRanges } from "./byte-ranges.ts";
import { hasConditions, isRangeUsable, judgeConditions, requireWhole, wantsWhole } from "./conditions.ts";
import { httpDate } from "./date-text.ts";
import { type DavExchange, type HttpResponse, versionIn } from "./exchange.ts";
import { contentTypeOf } from "./live-properties.ts";
import { sendParts } from "./outlet.ts";
import type { DavResource, Fetched } from "./resource.ts";
import { DavRefusal } from "./status-table.ts";
import { checkParent } from "./tree-methods.ts";

/** Headers of every answer that carries a user's bytes: no browser may run them. */
const USER_BYTES_HEADERS: readonly (readonly [string, string])[] = [
  ["x-content-type-options", "nosniff"],
  ["content-security-policy", "sandbox; default-src 'none'"],
  ["cross-origin-resource-policy", "same-origin"],
];

/** Cache-Control where the place names no other. */
const USUAL_CACHE_CONTROL = "private, no-cache";

const FOLDER_TEXT =
  "This is a folder: open it with a WebDAV program, or in the browser at the door's address.\n";

/** Headers of one version, which an answer with another must not keep. */
const VERSION_HEADERS: readonly string[] = [
  "etag",
  "last-modified",
  "accept-ranges",
  "content-range",
  "content-length",
];

/** Versions of a file that a GET looks at, while each goes before its bytes are read. */
const GET_VERSIONS = 2;

/** Answers a GET or a HEAD, with ranges and conditions; once more where the file is replaced meanwhile. */
export async function answerGet(exchange: DavExchange): Promise<void> {
  await answerNewest(exchange.response, () => answerVersion(exchange));
}

/**
 * Answers with the version that is there, and once more where that has gone before its first byte. Rejects as `answer`
 * does, which throws ETAG_MISMATCH then; with 503 where each goes.
 */
export async function answerNewest(
  response: Pick<HttpResponse, "headersSent" | "removeHeader">,
  answer: () => Promise<void>,
): Promise<void> {
  for (let version = 1; version <= GET_VERSIONS; version++) {
    try {
      return await answer();
    } catch (error) {
      if (!isGroveError(error, "ETAG_MISMATCH") || response.headersSent) throw error;
      for (const name of VERSION_HEADERS) response.removeHeader(name);
    }
  }
  // A 412 would say that a condition of the client's does not hold, and none was found so.
  throw new DavRefusal(503, "the file is being replaced over and over; try again in a moment");
}

/** Answers with the version that is there; throws ETAG_MISMATCH, and sends nothing, where that has gone. */
async function answerVersion(exchange: DavExchange): Promise<void> {
  const { response, request } = exchange;
  const { resource, data }: Fetched = wantsWhole(request)
    ? await exchange.fetched()
    : { resource: await exchange.resource() };
  for (const [name, value] of USER_BYTES_HEADERS) response.setHeader(name, value);
  response.setHeader("cache-control", exchange.place.cacheControl ?? USUAL_CACHE_CONTROL);
  // Some programs ask by HEAD whether a folder is there (RFC 4918, section 9.4, leaves it open what a GET gives).
  if (resource.isCollection) return exchange.replyText(200, "text/plain; charset=utf-8", FOLDER_TEXT);
  response.setHeader("etag", `"${resource.etag}"`);
  response.setHeader("last-modified", httpDate(resource.changedMs));
  response.setHeader("accept-ranges", "bytes");
  // The If header was judged by an earlier look.
  exchange.judgedVersion(exchange.path, resource);
  const verdict = judgeConditions(request.headers, resource, true);
  if (verdict === "failed") throw new DavRefusal(412, "the file's version is another one");
  if (verdict === "not-modified") {
    exchange.replyStatus(304);
    return;
  }
  const isRanged = request.method === "GET" && isRangeUsable(request.headers, resource);
  const ranges = isRanged ? readRanges(exchange.header("range"), resource.size) : "all";
  if (ranges === "none") {
    response.setHeader("content-range", `bytes */${resource.size}`);
    throw new DavRefusal(416, "the file has no such bytes");
  }
  const [first, second] = ranges === "all" ? [] : ranges;
  if (ranges !== "all" && second !== undefined) return await sendRanges(exchange, resource, ranges);
  const { start, end } = first ?? { start: 0, end: resource.size };
  response.statusCode = first === undefined ? 200 : 206;
  if (first !== undefined) response.setHeader("content-range", `bytes ${start}-${end - 1}/${resource.size}`);
  response.setHeader("content-type", contentTypeOf(resource));
  response.setHeader("content-length", end - start);
  if (request.method === "GET" && data === undefined) await sendRange(exchange, resource, { start, end });
  response.end(data);
}

/** Answers a PUT. */
export async function answerPut(exchange: DavExchange): Promise<void> {
  requireWhole(exchange.request.headers);
  const small = isSmallAndFree(exchange) ? await exchange.body(INLINE_FILE_MAX_BYTES) : undefined;
  if (small !== undefined) {
    const file = { data: small, changedMs: changedMsOf(exchange), tokens: exchange.tokens };
    const made = await exchange.tree.create(exchange.path, file);
    if (made !== undefined) return replyWritten(exchange, made, true);
  }
  const before = await exchange.tree.look(exchange.path);
  if (before?.isCollection === true || exchange.hasSlash)
    throw new DavRefusal(405, "a folder has no bytes of its own");
  await checkParent(exchange, exchange.path);
  exchange.checkVersion(before);
  const judged = exchange.judgedVersion(exchange.path, before);
  const wish = {
    size: lengthOf(exchange),
    expectedBytes: bytesIn(exchange.header("x-expected-entity-length")),
    awaitsContinue: exchange.awaitsContinue,
    ifMatch: versionIn(judged),
    mustBeNew: judged === "none",
    isThere: before !== undefined,
    changedMs: changedMsOf(exchange),
  };
  const body = small === undefined ? exchange.stream() : alone(small);
  const written = await exchange.tree.write(exchange.path, body, wish, exchange.tokens);
  return replyWritten(exchange, written, before === undefined);
}

/**
 * True for a small body that comes unasked, for any version of a file: most make a new one, for which nothing needs
 * to be looked at before. A client that waits for leave is told of a refusal before it sends its body.
 */
function isSmallAndFree(exchange: DavExchange): boolean {
  const { headers } = exchange.request;
  if (exchange.awaitsContinue || headers["if"] !== undefined || hasConditions(headers)) return false;
  const size = headers["content-length"] === undefined ? undefined : lengthOf(exchange);
  const isSmall = size !== undefined && size <= INLINE_FILE_MAX_BYTES;
  return isSmall && exchange.path.length > 0 && !exchange.hasSlash;
}

async function* alone(data: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield data;
}

function replyWritten(exchange: DavExchange, written: DavResource, isNew: boolean): void {
  exchange.response.setHeader("etag", `"${written.etag}"`);
  if (changedMsOf(exchange) !== 0) exchange.response.setHeader("x-oc-mtime", "accepted");
  exchange.replyStatus(isNew ? 201 : 204);
}

/** Sends bytes of that version, behind a head: nothing leaves before the version is known to be there still. */
async function sendRange(
  exchange: DavExchange,
  resource: DavResource,
  range: ByteRange,
  head?: string,
): Promise<void> {
  if (range.start === range.end) return;
  const { response, tree } = exchange;
  let before = head === undefined ? [] : [Buffer.from(head)];
  await tree.read(resource.path, resource.etag, range, (parts) => {
    const sent = [...before, ...parts];
    before = [];
    return sendParts(response, sent);
  });
}

/** Sends several ranges, all of that version: where it goes on the way, the answer is cut off. */
async function sendRanges(
  exchange: DavExchange,
  resource: DavResource,
  ranges: readonly ByteRange[],
): Promise<void> {
  const boundary = randomBytes(16).toString("hex");
  const heads = ranges.map(
    ({ start, end }) =>
      `\r\n--${boundary}\r\nContent-Type: ${contentTypeOf(resource)}\r\nContent-Range: bytes ${start}-${end - 1}/${resource.size}\r\n\r\n`,
  );
  const tail = `\r\n--${boundary}--\r\n`;
  const bytes = ranges.reduce((sum, { start, end }) => sum + end - start, 0);
  const { response } = exchange;
  response.statusCode = 206;
  response.setHeader("content-type", `multipart/byteranges; boundary=${boundary}`);
  response.setHeader("content-length", heads.join("").length + bytes + tail.length);
  for (const [index, range] of ranges.entries()) {
    await sendRange(exchange, resource, range, heads[index]);
  }
  response.end(tail);
}

/** Bytes of the body; undefined for one without a length. macOS gives with its chunks what it expects, which binds nobody. */
function lengthOf(exchange: DavExchange): number | undefined {
  return bytesIn(exchange.header("content-length") ?? (exchange.hasBody ? undefined : "0"));
}

/** A number of bytes in a header; undefined for none. */
function bytesIn(header: string | undefined): number | undefined {
  return header !== undefined && /^\d{1,15}$/u.test(header) ? Number(header) : undefined;
}

/** The time that rclone and ownCloud's programs give with a file; 0 for none. */
function changedMsOf(exchange: DavExchange): number {
  const header = exchange.header("x-oc-mtime") ?? "";
  return /^\d{1,12}(?:\.\d{1,9})?$/u.test(header) ? Math.max(1, Math.round(Number(header) * 1000)) : 0;
}
