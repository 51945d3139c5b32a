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

/** Takes a lock. A file that was made for one that is then refused goes into the trash. */
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
    if (made !== undefined) {
      const { etag: ifMatch } = made;
      // One that somebody has written to, or locked, is theirs by now.
      await cluster
        .runAt(place, ONE_ATTEMPT, (server) =>
          server.files.trashFile({ ...place, ifMatch }, shownTokens(server, tokens).unary),
        )
        .catch(() => undefined);
    }
    throw error;
  }
}
