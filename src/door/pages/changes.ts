// What the pages change: folders, names, places, the trash, shares.
import { GroveError } from "#base/errors.ts";
import { canonicalUsername } from "#base/names.ts";
import { LONG, ONCE, type RetryPolicy, SHORT } from "#client/connection/cluster.ts";
import { makeFolder as createFolder } from "#client/connection/folders.ts";
import { OnConflict } from "#wire/proto/gen/grove/v1/common_pb.ts";
import {
  type FileFacts,
  moveRequest,
  placeRequest,
  purgeRequest,
  restoreRequest,
  shareRequest,
} from "#wire/webapi/files.ts";
import { bodyOf, type PageCall } from "./call.ts";
import { factsOf } from "./looks.ts";

/** A copy may take long, and must not run twice. */
const LONG_ONCE: RetryPolicy = { ...LONG, isRepeatable: false };

const CONFLICTS = {
  fail: OnConflict.FAIL,
  rename: OnConflict.RENAME,
  replace: OnConflict.REPLACE,
} as const;

/** Makes a folder. */
export async function makeFolder({ exchange, person }: PageCall): Promise<FileFacts> {
  const place = await bodyOf(exchange, placeRequest);
  return factsOf(await createFolder(person.cluster, place, { mayExist: false }));
}

/** Renames or moves. */
export async function move({ exchange, person }: PageCall): Promise<FileFacts> {
  const { root, path, target: targetPath, conflict } = await bodyOf(exchange, moveRequest);
  const request = { root, path, targetPath, onConflict: CONFLICTS[conflict] };
  return factsOf(
    await person.cluster.runAt({ root, path }, ONCE, (server) => server.files.rename(request, server.unary)),
  );
}

/** Copies. */
export async function copy({ exchange, person }: PageCall): Promise<FileFacts> {
  const { root, path, target: targetPath, conflict } = await bodyOf(exchange, moveRequest);
  const request = { root, path, targetPath, onConflict: CONFLICTS[conflict] };
  return factsOf(
    await person.cluster.runAt({ root, path }, LONG_ONCE, (server) =>
      server.files.copy(request, server.stream),
    ),
  );
}

/** Puts something into the trash; its id brings it back. */
export async function toTrash({ exchange, person }: PageCall): Promise<{ readonly id: string }> {
  const place = await bodyOf(exchange, placeRequest);
  const { item } = await person.cluster.runAt(place, ONCE, (server) =>
    server.files.trashFile(place, server.unary),
  );
  return { id: item?.trashId ?? "" };
}

/** Brings something back from the trash. */
export async function restore({ exchange, person }: PageCall): Promise<FileFacts> {
  const { root, id: trashId, conflict } = await bodyOf(exchange, restoreRequest);
  const request = { root, trashId, onConflict: CONFLICTS[conflict] };
  return factsOf(
    await person.cluster.run(root, ONCE, (server) => server.files.restoreFile(request, server.unary)),
  );
}

/** Deletes from the trash for good. */
export async function purge({ exchange, person }: PageCall): Promise<{ readonly items: number }> {
  const { root, ids: trashIds, all } = await bodyOf(exchange, purgeRequest);
  // No ids would mean everything, which a page has to say.
  if ((trashIds.length === 0) !== all)
    throw new GroveError("BAD_ARGUMENT", "name what is to be deleted, or say that it is everything");
  const { purgedItems } = await person.cluster.run(root, LONG_ONCE, (server) =>
    server.files.purgeTrash({ root, trashIds }, server.stream),
  );
  return { items: Number(purgedItems) };
}

/** Shares a place with somebody. */
export function share(call: PageCall): Promise<{ readonly user: string }> {
  return changeShare(call, "share");
}

/** Ends that. */
export function unshare(call: PageCall): Promise<{ readonly user: string }> {
  return changeShare(call, "unshare");
}

async function changeShare(
  { exchange, person }: PageCall,
  act: "share" | "unshare",
): Promise<{ readonly user: string }> {
  const { root, path, user: typed } = await bodyOf(exchange, shareRequest);
  const user = canonicalUsername(typed.trim());
  await person.cluster.runAt({ root, path }, SHORT, async (server) => {
    await server.files[act]({ root, path, user }, server.unary);
  });
  return { user };
}
