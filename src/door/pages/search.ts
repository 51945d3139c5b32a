// Finds names below a folder, level by level, with an end to the work that one search makes.
import { isGroveError } from "#base/errors.ts";
import type { Cluster } from "#client/connection/cluster.ts";
import { isFolder, listPages } from "#client/connection/listing.ts";
import type { RemotePath } from "#client/connection/remote-path.ts";
import { DavRefusal } from "#door/webdav/status-table.ts";
import type { Attr } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { FoundEntry, FoundNames } from "#wire/webapi/file-access.ts";
import { type PageCall, placeOf } from "./call.ts";
import {
  SEARCH_ENTRIES_MAX,
  SEARCH_FOLDERS_MAX,
  SEARCH_FOUND_MAX,
  SEARCH_TEXT_MAX_LENGTH,
} from "./limits.ts";
import { entryOf } from "./looks.ts";

/** The names below a folder that have a text in them, whatever its case. */
export async function search({ exchange, person }: PageCall): Promise<FoundNames> {
  const { root, path: top } = placeOf(exchange);
  const wanted = comparable(exchange.query.get("name") ?? "").trim();
  if (wanted === "" || wanted.length > SEARCH_TEXT_MAX_LENGTH)
    throw new DavRefusal(400, `a search has 1 to ${SEARCH_TEXT_MAX_LENGTH} characters`);
  const found: FoundEntry[] = [];
  const folders = [top];
  let looked = 0;
  for (let at = 0; at < folders.length; at++) {
    const path = folders[at] ?? "/";
    if (at >= SEARCH_FOLDERS_MAX) return { found, looked, isWhole: false };
    for await (const page of pagesOf(person.cluster, { root, path }, at === 0)) {
      if (exchange.destroyed) throw new DavRefusal(499, "the connection is gone");
      for (const attr of page) {
        if (looked >= SEARCH_ENTRIES_MAX || found.length >= SEARCH_FOUND_MAX)
          return { found, looked, isWhole: false };
        looked++;
        const below = `${path === "/" ? "" : path}/${attr.name}`;
        if (isFolder(attr)) folders.push(below);
        if (comparable(attr.name).includes(wanted)) found.push({ ...entryOf(attr), path: below });
      }
    }
  }
  return { found, looked, isWhole: true };
}

/** Pages of a folder; none of one below the top that has gone since its name was read, as folders do. */
async function* pagesOf(
  cluster: Cluster,
  place: RemotePath,
  isTop: boolean,
): AsyncGenerator<readonly Attr[], void, undefined> {
  try {
    yield* listPages(cluster, place);
  } catch (error) {
    if (isTop || !isGroveError(error, "NO_SUCH_PATH", "NOT_DIRECTORY")) throw error;
  }
}

function comparable(text: string): string {
  return text.normalize("NFC").toLowerCase();
}
