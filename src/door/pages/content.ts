// A file's bytes for a browser, and small files from one.

import { GroveError } from "#base/errors.ts";
import { splitPath } from "#base/names.ts";
import { attrOf } from "#client/connection/listing.ts";
import { sendDownload } from "#door/tree/downloads.ts";
import { resourceOf } from "#door/tree/resources.ts";
import { fetchFile } from "#door/tree/small-files.ts";
import { writeFile } from "#door/tree/write-file.ts";
import { readRanges } from "#door/webdav/byte-ranges.ts";
import {
  headerOf,
  isRangeUsable,
  judgeConditions,
  requireWhole,
  wantsWhole,
} from "#door/webdav/conditions.ts";
import { httpDate } from "#door/webdav/date-text.ts";
import { answerNewest } from "#door/webdav/file-methods.ts";
import { sendParts } from "#door/webdav/outlet.ts";
import { DavRefusal } from "#door/webdav/status-table.ts";
import { type FileFacts } from "#wire/webapi/files.ts";
import { type PageCall, placeOf } from "./call.ts";
import { contentTypeOfName, dispositionOf, USER_BYTES_HEADERS } from "./content-types.ts";
import { factsOf } from "./looks.ts";

/** Bytes of a file that comes in one request; larger ones come as resumable uploads. */
export const WHOLE_FILE_MAX_BYTES = 8_388_608;

/**
 * Sends a file, or one range of it; once more where the file is replaced meanwhile. `version` in the address is an
 * ETag: that version or none, for players, which ask part by part and set no condition.
 */
export async function sendContent(call: PageCall): Promise<void> {
  await answerNewest(call.exchange, () => sendThere(call));
}

/** Sends the version that is there; throws ETAG_MISMATCH, and sends nothing, where that has gone. */
async function sendThere({ exchange, person }: PageCall): Promise<void> {
  const place = placeOf(exchange);
  const path = splitPath(place.path);
  const whole = wantsWhole(exchange) ? await fetchFile(person.cluster, path, place) : undefined;
  const resource = whole?.resource ?? resourceOf(path, await attrOf(person.cluster, place), []);
  if (resource.isCollection) throw new GroveError("IS_DIRECTORY", "this is a folder");
  const { headers, method, query } = exchange;
  for (const [name, value] of Object.entries(USER_BYTES_HEADERS)) exchange.setHeader(name, value);
  exchange.setHeader("etag", `"${resource.etag}"`);
  exchange.setHeader("last-modified", httpDate(resource.changedMs));
  exchange.setHeader("accept-ranges", "bytes");
  const wanted = query.get("version");
  if (wanted !== null && wanted !== resource.etag) throw new DavRefusal(412, "the file has been replaced");
  const verdict = judgeConditions(headers, resource, true);
  if (verdict === "failed") throw new DavRefusal(412, "the file's version is another one");
  if (verdict === "not-modified") {
    exchange.statusCode = 304;
    return exchange.end();
  }
  const isRanged = method === "GET" && isRangeUsable(headers, resource);
  const asked = isRanged ? readRanges(headerOf(headers, "range"), resource.size) : "all";
  if (asked === "none") {
    exchange.setHeader("content-range", `bytes */${resource.size}`);
    throw new DavRefusal(416, "the file has no such bytes");
  }
  const range = asked === "all" || asked.length > 1 ? undefined : asked[0];
  const { start, end } = range ?? { start: 0, end: resource.size };
  const name = path.at(-1) ?? "";
  const { type, isShown } = contentTypeOfName(name);
  exchange.setHeader("content-type", type);
  exchange.setHeader("content-disposition", dispositionOf(name, isShown && query.get("view") === "1"));
  exchange.setHeader("content-length", end - start);
  exchange.statusCode = range === undefined ? 200 : 206;
  if (range !== undefined) exchange.setHeader("content-range", `bytes ${start}-${end - 1}/${resource.size}`);
  if (method === "GET" && whole?.data === undefined) {
    const version = { etag: resource.etag, start, end };
    await sendDownload(person.cluster, place, version, (parts) => sendParts(exchange, parts));
  }
  exchange.end(whole?.data);
}

/** Writes a small file: all of the body, or nothing. */
export async function takeContent({ exchange, person }: PageCall): Promise<FileFacts> {
  requireWhole(exchange.headers);
  const place = placeOf(exchange);
  const size = Number(headerOf(exchange.headers, "content-length") ?? "x");
  if (!Number.isSafeInteger(size) || size < 0) throw new DavRefusal(411, "the length has to be told");
  if (size > WHOLE_FILE_MAX_BYTES) throw new DavRefusal(413, "a file of this size comes as an upload");
  const attr = await writeFile(person.cluster, place, {
    body: exchange,
    wish: {
      size,
      ifMatch: undefined,
      mustBeNew: exchange.query.get("exists") !== "replace",
      changedMs: changedOf(exchange.query.get("changed")),
    },
    tokens: [],
  });
  return factsOf(attr);
}

/** A time of change in Unix milliseconds; 0, which means now, for none. */
export function changedOf(text: string | null): number {
  return /^\d{1,15}$/u.test(text ?? "") ? Number(text) : 0;
}
