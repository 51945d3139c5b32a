// A lock on a name, with an empty file made for it where nothing is (RFC 4918, section 7.3).
import { isGroveError } from "#base/errors.ts";
import { type Cluster, ONCE, type RetryPolicy } from "#client/connection/cluster.ts";
import type { RemotePath } from "#client/connection/remote-path.ts";
import type { LockWish, SubmittedTokens } from "#door/webdav/resource.ts";
import type { LockInfo } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { shownTokens } from "./shown-tokens.ts";
import { createFile } from "./write-file.ts";

/** Who was refused has waited for that already. */
const ONE_ATTEMPT: RetryPolicy = { ...ONCE, attempts: 1 };

/** A lock that was taken, and whether a file was made for it. */
interface TakenLock {
  readonly lock: LockInfo;
  readonly hasMadeFile: boolean;
}

/**
 * Takes a lock. Where nothing is, a FileServer refuses what cannot be locked before a file is made for it. Of a file
 * whose lock is refused after all, since somebody was faster, nothing stays.
 */
export async function takeLock(
  cluster: Cluster,
  { root, path }: RemotePath,
  { scope, isDeep, owner, seconds }: LockWish,
  tokens: SubmittedTokens,
): Promise<TakenLock> {
  const place = { root, path };
  const request = { ...place, shared: scope === "shared", deep: isDeep, note: owner, seconds };
  const take = (): Promise<LockInfo> =>
    cluster.runAt(place, ONCE, (server) => server.files.lock(request, shownTokens(server, tokens).unary));
  try {
    return { lock: await take(), hasMadeFile: false };
  } catch (error) {
    if (!isGroveError(error, "NO_SUCH_PATH")) throw error;
  }
  // Undefined where somebody else has made one meanwhile; what else is the matter the next call says.
  const made = await createFile(cluster, place, { data: new Uint8Array(), changedMs: 0, tokens }, true);
  try {
    return { lock: await take(), hasMadeFile: made !== undefined };
  } catch (error) {
    if (made !== undefined) await remove(cluster, place, made.etag, tokens).catch(() => undefined);
    throw error;
  }
}

/** Removes a file for good in the version that was made: one that somebody has written to, or locked, is theirs by now. */
async function remove(
  cluster: Cluster,
  place: RemotePath,
  ifMatch: string,
  tokens: SubmittedTokens,
): Promise<void> {
  const { root } = place;
  const { item } = await cluster.runAt(place, ONE_ATTEMPT, (server) =>
    server.files.trashFile({ root, path: place.path, ifMatch }, shownTokens(server, tokens).unary),
  );
  const trashId = item?.trashId ?? "";
  // Without an id it would empty the whole trash.
  if (trashId === "") return;
  await cluster.run(root, ONE_ATTEMPT, (server) =>
    server.files.purgeTrash({ root, trashIds: [trashId] }, server.unary),
  );
}
