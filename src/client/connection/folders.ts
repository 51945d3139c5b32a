// Makes folders on the cluster; an existing folder is optionally no error.

import { GroveError, isGroveError } from "#base/errors.ts";
import type { Attr } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { type Cluster, type RetryPolicy, SHORT } from "./cluster.ts";
import { attrOf, isFolder } from "./listing.ts";
import { refusalOf, wasUnseen } from "./refusal.ts";
import type { RemotePath } from "./remote-path.ts";

/** What is said of a file that has the name of a folder to be made. */
export function fileThere(path: string): string {
  return `${path} is a file`;
}

/**
 * Makes one folder, again where the answer is lost. With mayExist an existing folder is accepted; a file of that
 * name is NOT_DIRECTORY.
 */
export async function makeFolder(
  cluster: Pick<Cluster, "runAt">,
  place: RemotePath,
  options: { readonly mayExist: boolean; readonly patience?: RetryPolicy },
): Promise<Attr> {
  const { mayExist, patience = SHORT } = options;
  let isAnswerLost = false;
  try {
    return await cluster.runAt(place, patience, async (server) => {
      try {
        return await server.files.createDirectory({ root: place.root, path: place.path }, server.unary);
      } catch (error) {
        const failure = await refusalOf(error, server.address);
        isAnswerLost ||= !(failure instanceof GroveError || wasUnseen(failure));
        throw failure;
      }
    });
  } catch (error) {
    // After a lost answer the existing folder may be the one that this call made.
    if (!isGroveError(error, "PATH_EXISTS") || !(mayExist || isAnswerLost)) throw error;
    const attr = await attrOf(cluster, place, patience);
    if (isFolder(attr)) return attr;
    throw new GroveError("NOT_DIRECTORY", fileThere(place.path), { cause: error });
  }
}
