// Reads folders page by page, and single attributes.
import { setImmediate as turnEnd } from "node:timers/promises";
import { LIST_PAGE_MAX } from "#base/limits.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { type Attr, Kind, Sort } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { type DecodedListing, decodeListing } from "#wire/proto/listing-decoder.ts";
import { type Cluster, type RetryPolicy, SHORT } from "./cluster.ts";
import type { RemotePath } from "./remote-path.ts";

/** Pages of a folder, each at most 1,000 entries, in the requested order. */
export async function* listPages(
  cluster: Cluster,
  folder: RemotePath,
  options: { readonly patience?: RetryPolicy; readonly sort?: Sort } = {},
): AsyncGenerator<readonly Attr[], void, undefined> {
  const { patience = SHORT, sort = Sort.NAME } = options;
  const read = (pageToken: string): Promise<DecodedListing> =>
    cluster.runAt(folder, patience, async (server) => {
      const request = { root: folder.root, path: folder.path, pageSize: LIST_PAGE_MAX, pageToken, sort };
      return decodeListing(await server.channel.unaryBytes(FileServer.method.listDir, request, server.unary));
    });
  let pageToken = "";
  let coming: Promise<DecodedListing> | undefined = read(pageToken);
  while (coming !== undefined) {
    const page: DecodedListing = await coming;
    const { nextPageToken } = page;
    const isLast = nextPageToken === "";
    // The server makes the next page while this one is decoded and used.
    coming = isLast || nextPageToken === pageToken ? undefined : read(nextPageToken);
    // The consumer may stop before the page comes.
    coming?.catch(() => undefined);
    // The request leaves at the end of this turn: decoding first would delay it.
    if (coming !== undefined) await turnEnd();
    const entries = page.entries();
    // A server that repeats one page token would keep the client in a loop.
    if (!isLast && (nextPageToken === pageToken || entries.length === 0)) {
      throw new ClientError("SERVER_BROKEN", `${folder.path}: the server's listing does not end`);
    }
    pageToken = nextPageToken;
    yield entries;
  }
}

/** The attributes of a path. */
export function attrOf(
  cluster: Pick<Cluster, "runAt">,
  place: RemotePath,
  patience: RetryPolicy = SHORT,
): Promise<Attr> {
  return cluster.runAt(place, patience, (server) =>
    server.files.getAttr({ root: place.root, path: place.path }, server.unary),
  );
}

/** The attributes of a path, undefined when there is nothing. */
export async function attrIfThere(cluster: Cluster, place: RemotePath): Promise<Attr | undefined> {
  try {
    return await attrOf(cluster, place);
  } catch (error) {
    if ((error as { code?: unknown }).code === "NO_SUCH_PATH") return undefined;
    throw error;
  }
}

/** True for a directory. */
export function isFolder(attr: Attr): boolean {
  return attr.kind === Kind.DIRECTORY;
}
