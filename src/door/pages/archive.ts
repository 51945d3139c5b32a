// A folder as one zip archive: a stream of known length, without a temporary file.
import { GroveError } from "#base/errors.ts";
import { splitPath } from "#base/names.ts";
import { attrOf, isFolder, listPages } from "#client/connection/listing.ts";
import { sendDownload } from "#door/tree/downloads.ts";
import { sendPart, sendParts } from "#door/webdav/outlet.ts";
import { DavRefusal } from "#door/webdav/status-table.ts";
import { crc32 } from "#os/crc32.ts";
import { type PageCall, type PagePlace, placeOf } from "./call.ts";
import { dispositionOf, USER_BYTES_HEADERS } from "./content-types.ts";
import { archiveBytes, centralHeader, endOf, localHeader, type ZipEntry } from "./zip.ts";
import { type TakenNames, zipName } from "./zip-names.ts";

/** Files and folders of one archive: their names are held until its end. */
export const ARCHIVE_ENTRIES_MAX = 50_000;
/** Characters of those names, each with the folders before it: deep folders make few entries large. */
export const ARCHIVE_NAMES_MAX_LENGTH = 16_777_216;

interface Packed extends ZipEntry {
  readonly path: string;
  readonly etag: string;
}

/** Sends the archive. Breaks the connection where a file changes meanwhile: a half archive is none. */
export async function sendArchive(call: PageCall): Promise<void> {
  const { exchange, person } = call;
  const place = placeOf(exchange);
  const attr = await attrOf(person.cluster, place);
  if (!isFolder(attr)) throw new GroveError("NOT_DIRECTORY", "this is a file; download it as it is");
  const entries = await entriesBelow(call, place);
  const bytes = archiveBytes(entries);
  const name = `${zipName(splitPath(place.path).at(-1) ?? "files", new Map())}.zip`;
  for (const [header, value] of Object.entries(USER_BYTES_HEADERS)) exchange.setHeader(header, value);
  exchange.setHeader("content-type", "application/zip");
  exchange.setHeader("content-disposition", dispositionOf(name, false));
  exchange.setHeader("content-length", bytes);
  exchange.statusCode = 200;
  if (exchange.method === "GET") await sendEntries(call, place.root, entries);
  exchange.end();
}

/** Everything below a folder, parents first, with names that are safe to unpack. */
async function entriesBelow({ person, exchange }: PageCall, top: PagePlace): Promise<Packed[]> {
  const found: Packed[] = [];
  let names = 0;
  const folders: { readonly path: string; readonly prefix: string }[] = [{ path: top.path, prefix: "" }];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const { path, prefix } = folder;
    const taken: TakenNames = new Map();
    for await (const page of listPages(person.cluster, { root: top.root, path })) {
      if (exchange.destroyed) throw new DavRefusal(499, "the connection is gone");
      for (const attr of page) {
        const below = `${path === "/" ? "" : path}/${attr.name}`;
        const name = prefix + zipName(attr.name, taken);
        const changedMs = Number(attr.mtimeMs);
        if (isFolder(attr)) {
          found.push({ name: `${name}/`, size: 0, crc32: 0, changedMs, path: below, etag: "" });
          folders.push({ path: below, prefix: `${name}/` });
        } else {
          const { etag } = attr;
          found.push({ name, size: Number(attr.size), crc32: attr.crc32, changedMs, path: below, etag });
        }
        names += name.length + below.length;
        if (found.length > ARCHIVE_ENTRIES_MAX || names > ARCHIVE_NAMES_MAX_LENGTH) throw tooMany();
      }
    }
  }
  return found;
}

function tooMany(): DavRefusal {
  const most = ARCHIVE_ENTRIES_MAX.toLocaleString("en");
  return new DavRefusal(
    409,
    `an archive has at most ${most} files, fewer with long names: download the folders in it one by one`,
  );
}

async function sendEntries({ exchange, person }: PageCall, root: string, entries: Packed[]): Promise<void> {
  let offset = 0;
  const offsets: number[] = [];
  for (const entry of entries) {
    const header = localHeader(entry);
    offsets.push(offset);
    offset += header.length + entry.size;
    await sendPart(exchange, header);
    if (entry.size === 0) continue;
    let sum = 0;
    const version = { etag: entry.etag, start: 0, end: entry.size };
    await sendDownload(person.cluster, { root, path: entry.path }, version, (parts) => {
      for (const part of parts) sum = crc32(part, sum);
      return sendParts(exchange, parts);
    });
    if (sum >>> 0 !== entry.crc32 >>> 0) throw new Error(`the bytes of ${entry.path} are not its own`);
  }
  let bytes = 0;
  for (const [index, entry] of entries.entries()) {
    const row = centralHeader(entry, offsets[index] ?? 0);
    bytes += row.length;
    await sendPart(exchange, row);
  }
  await sendPart(exchange, endOf(entries.length, { offset, bytes }));
}
