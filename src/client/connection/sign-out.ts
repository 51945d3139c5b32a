// Ends sessions at the servers that hold them: those of this machine, or all of a user.

import type { Profile } from "#client/signin/profile.ts";
import { callMetadata } from "./call-metadata.ts";
import type { ClientContext } from "./client-context.ts";
import type { FileServerLink, OpenSession } from "./file-server-link.ts";
import type { StoredSession } from "./session-cache.ts";

/** Ends this machine's sessions at their servers. At an unreachable server they expire. */
export async function endSessions(context: ClientContext): Promise<SignOut> {
  const sessions = await context.sessions.listSessions();
  return endListedSessions(sessions, await context.storedProfile(), context.signal);
}

/** The same for given sessions, at the cluster where they were opened; without its settings none is told. */
export async function endListedSessions(
  sessions: readonly StoredSession[],
  profile: Profile | undefined,
  signal: AbortSignal,
): Promise<SignOut> {
  const unreachable: string[] = [];
  if (sessions.length === 0) return { ended: 0, unreachable };
  if (profile === undefined) return { ended: 0, unreachable: sessions.map(({ address }) => address) };
  const [{ createClient }, { FileServer }, { openChannel }, { isStatusError }, { Code }] = await Promise.all([
    import("#wire/grpc/client.ts"),
    import("#wire/proto/gen/grove/v1/file_server_pb.ts"),
    import("#client/signin/server-address.ts"),
    import("./refusal.ts"),
    import("#wire/framing/status.ts"),
  ]);
  let ended = 0;
  await Promise.all(
    sessions.map(async (session) => {
      const channel = openChannel(profile, session.address, [session.address]);
      try {
        await createClient(FileServer, channel).endSession(
          {},
          {
            metadata: callMetadata(session.token),
            timeoutMs: END_TIMEOUT_MS,
            signal,
          },
        );
        ended++;
      } catch (error) {
        signal.throwIfAborted();
        // A session that the server does not know has ended already.
        const isKnown = isStatusError(error) && error.code === Code.UNAUTHENTICATED;
        if (!isKnown) unreachable.push(session.address);
      } finally {
        channel.close();
      }
    }),
  );
  return { ended, unreachable };
}

/** Longest time that a sign-out waits for servers. */
const END_TIMEOUT_MS = 3_000;

/** The outcome of ending sessions. */
export interface SignOut {
  readonly ended: number;
  /** Servers that could not be reached. */
  readonly unreachable: readonly string[];
}

/**
 * Ends all sessions of the user on the servers of this machine's sessions, the user's own root and roots
 * shared by others. A server that no longer knows this machine's session is signed in to once more, since
 * other sessions may be open.
 */
export async function endSessionsEverywhere(context: ClientContext): Promise<SignOut> {
  const cluster = await context.cluster();
  const addresses = new Set((await context.sessions.listSessions()).map(({ address }) => address));
  const unreachable = new Set<string>();
  try {
    for (const { address } of await cluster.router.roots()) addresses.add(address);
  } catch {
    context.signal.throwIfAborted();
    // Without a metaserver or a valid ID token, only the servers that this machine knows are asked.
    const { metaservers } = await context.profile();
    for (const metaserver of metaservers) unreachable.add(metaserver);
  }
  let ended = 0;
  for (const address of addresses) {
    try {
      ended += await endAllAt(cluster.link(address), context);
    } catch {
      context.signal.throwIfAborted();
      unreachable.add(address);
    }
  }
  return { ended, unreachable: [...unreachable] };
}

async function endAllAt(link: FileServerLink, context: ClientContext): Promise<number> {
  const end = async ({ files, token }: OpenSession): Promise<number> => {
    const options = { metadata: callMetadata(token), timeoutMs: END_TIMEOUT_MS, signal: context.signal };
    return (await files.endSession({ everywhere: true }, options)).ended;
  };
  try {
    return await end(await link.open());
  } catch {
    context.signal.throwIfAborted();
    return end(await link.signIn());
  }
}
