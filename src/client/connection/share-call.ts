// The common part of `share` and `unshare`: one call for each user, and the output.
import { canonicalUsername } from "#base/names.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import type { ClientContext } from "./client-context.ts";
import { SHORT } from "./cluster.ts";
import type { TypedPath } from "./remote-path.ts";

/** The outcome for one user. */
export interface ShareOutcome {
  readonly user: string;
  readonly place: TypedPath;
  readonly owner: string;
  /** Files and folders that the change covers; 0 when nothing changed. */
  readonly affectedInodes: bigint;
}

/** Makes the call for each user in turn, and prints what `tell` returns. Both calls are idempotent. */
export async function runShare(
  context: ClientContext,
  act: "share" | "unshare",
  typed: { readonly path: string; readonly users: readonly string[] },
  tell: (outcome: ShareOutcome) => string[],
): Promise<void> {
  const users = typed.users.map((user) => usernameOf(user, act));
  const place = await context.resolve(typed.path);
  const cluster = await context.cluster();
  for (const user of users) {
    const { reply, username } = await cluster.runAt(place, SHORT, async (server) => ({
      reply: await server.files[act]({ root: place.root, path: place.path, user }, server.unary),
      username: server.username,
    }));
    const { affectedInodes, paysQuota } = reply;
    if (context.isJson) {
      await context.printJson({
        path: place.path,
        user,
        affected_inodes: affectedInodes,
        pays_quota: paysQuota,
      });
    } else {
      // A group's manager shares what is the group's.
      const owner = place.root === "" ? username : place.root;
      await context.print(...tell({ user, place, owner, affectedInodes }));
    }
  }
}

/** Inodes in words. */
export function inodesText(count: bigint): string {
  return count === 1n ? "1 file or folder" : `${count} files and folders`;
}

/** The username that was typed for a verb. Throws USAGE. */
export function usernameOf(typed: string, act: string): string {
  try {
    return canonicalUsername(typed);
  } catch (cause) {
    throw new ClientError("USAGE", `'${typed}' is not an e-mail address`, {
      todo: `First the path, then who: grove ${act} PATH USER`,
      cause,
    });
  }
}
