// What the pages look at: folders, single places, quota, what others share, the trash.
import { LIST_PAGE_MAX } from "#base/limits.ts";
import { SHORT } from "#client/connection/cluster.ts";
import { attrOf } from "#client/connection/listing.ts";
import { type Attr, Kind, Perm, Sort } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type {
  FileEntry,
  FileFacts,
  FileList,
  QuotaFacts,
  SharedPlace,
  TrashList,
} from "#wire/webapi/files.ts";
import { type PageCall, placeOf } from "./call.ts";

const SORTS: Readonly<Record<string, Sort>> = {
  name: Sort.NAME,
  "-name": Sort.NAME_DESC,
  size: Sort.SIZE,
  "-size": Sort.SIZE_DESC,
  changed: Sort.MTIME,
  "-changed": Sort.MTIME_DESC,
};

/** By name for everything else, and for what every object has. */
export function sortOf(word: string): Sort {
  return (Object.hasOwn(SORTS, word) ? SORTS[word] : undefined) ?? Sort.NAME;
}

/** One page of a folder. */
export async function list({ exchange, person }: PageCall): Promise<FileList> {
  const place = placeOf(exchange);
  const { query } = exchange;
  const request = {
    ...place,
    pageSize: LIST_PAGE_MAX,
    pageToken: query.get("page") ?? "",
    sort: sortOf(query.get("sort") ?? "name"),
  };
  const page = await person.cluster.runAt(place, SHORT, (server) =>
    server.files.listDir(request, server.unary),
  );
  return { entries: page.entries.map(entryOf), next: page.nextPageToken };
}

/** One place. */
export async function stat({ exchange, person }: PageCall): Promise<FileFacts> {
  const attr = await attrOf(person.cluster, placeOf(exchange));
  return factsOf(attr);
}

/** How full a root is. */
export async function quota({ exchange, person }: PageCall): Promise<QuotaFacts> {
  const { root } = placeOf(exchange);
  const found = await person.cluster.run(root, SHORT, (server) =>
    server.files.getQuota({ root }, server.unary),
  );
  return {
    quota_bytes: Number(found.quotaBytes),
    used_bytes: Number(found.usedBytes),
    live_bytes: Number(found.liveBytes),
    trash_bytes: Number(found.trashBytes),
    uploads_bytes: Number(found.stagingBytes),
    inodes: Number(found.inodes),
    inode_limit: Number(found.inodeLimit),
  };
}

/** What others share with the person. */
export async function sharedPlaces({ person }: PageCall): Promise<{ readonly places: SharedPlace[] }> {
  const roots = await person.sharedRoots();
  return { places: roots.map(({ owner, path }) => ({ owner, path })) };
}

/** One page of the trash, the newest first. */
export async function trash({ exchange, person }: PageCall): Promise<TrashList> {
  const { root } = placeOf(exchange);
  const pageToken = exchange.query.get("page") ?? "";
  const page = await person.cluster.run(root, SHORT, (server) =>
    server.files.showTrash({ root, pageSize: LIST_PAGE_MAX, pageToken }, server.unary),
  );
  const items = page.items.map((item) => ({
    id: item.trashId,
    path: item.originalPath,
    kind: kindOf(item.kind),
    size: Number(item.size),
    trashed_ms: Number(item.trashedAtMs),
    ends_ms: Number(item.expiresAtMs),
    by: item.trashedBy,
  }));
  return { items, next: page.nextPageToken };
}

/** A file or folder as a page sees it. */
export function entryOf(attr: Attr): FileEntry {
  const { name, size, mtimeMs, etag, shared, damaged, myPermissions } = attr;
  return {
    name,
    kind: kindOf(attr.kind),
    size: Number(size),
    changed_ms: Number(mtimeMs),
    etag,
    shared,
    ...(damaged ? { damaged } : {}),
    ...(myPermissions.includes(Perm.DELETE) ? {} : { kept: true }),
  };
}

/** The same with what the person may do. */
export function factsOf(attr: Attr): FileFacts {
  const { path, owner, myPermissions } = attr;
  return {
    ...entryOf(attr),
    path,
    owner,
    may_write: myPermissions.includes(Perm.WRITE),
    may_delete: myPermissions.includes(Perm.DELETE),
  };
}

function kindOf(kind: Kind): "file" | "folder" {
  return kind === Kind.DIRECTORY ? "folder" : "file";
}
