// `grove share --list`: one's shares with other users, and their exclusions.
import { LIST_PAGE_MAX } from "#base/limits.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { SHORT } from "#client/connection/cluster.ts";
import { attrOf } from "#client/connection/listing.ts";
import { pages } from "#client/connection/pages.ts";
import { usernameOf } from "#client/connection/share-call.ts";
import type { ListSharesResponse, ShareEntry } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { timeText } from "./attr-text.ts";

/**
 * Prints the shares at a path and below it, of some users or of all. For a single path also the shares above
 * it that apply.
 */
export async function listShares(
  context: ClientContext,
  request: { readonly path: string; readonly users: readonly string[] },
): Promise<void> {
  const users = new Set(request.users.map((user) => usernameOf(user, "share --list")));
  const isMeant = (user: string): boolean => users.size === 0 || users.has(user);
  const place = await context.resolve(request.path);
  const cluster = await context.cluster();
  const read = (pageToken: string): Promise<ListSharesResponse> =>
    cluster.runAt(place, SHORT, (server) =>
      server.files.listShares({ ...place, pageSize: LIST_PAGE_MAX, pageToken }, server.unary),
    );
  const listed: ShareEntry[] = [];
  for await (const { shares } of pages(read, (page) => page.shares, "the server's list of shares")) {
    listed.push(...shares.filter(({ user }) => isMeant(user)));
  }
  const here = new Set(listed.filter(({ path }) => path === place.path).map(({ user }) => user));
  const { shared } = await attrOf(cluster, place);
  const fromAbove = shared.filter((user) => isMeant(user) && !here.has(user));
  if (context.isJson) {
    await context.printJson({
      path: place.path,
      shares: listed.map((share) => ({
        path: share.path,
        user: share.user,
        excluded: share.excluded,
        made_by: share.madeBy,
        made_at: timeText(share.madeAtMs),
      })),
      shared_above: fromAbove,
    });
    return;
  }
  const width = Math.max(0, ...listed.map(({ path }) => path.length));
  await context.print(...listed.map((share) => row(share, width)));
  if (fromAbove.length > 0) {
    context.note(`A share of a folder above lets in: ${fromAbove.join(", ")}.`);
  } else if (listed.length === 0) {
    context.note(users.size === 0 ? "Nothing is shared there." : "Nothing is shared there with them.");
  }
}

function row({ path, user, excluded }: ShareEntry, width: number): string {
  return `${path.padEnd(width)}  ${excluded ? `not ${user}, taken out of the share above` : user}`;
}
