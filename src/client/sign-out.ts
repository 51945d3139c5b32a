// Ends sessions at the servers that still know them.
import { callMetadata } from "./call-metadata.ts";
import type { ClientContext } from "./client-context.ts";

/** Tells each server that a session of ours has ended. A server that cannot be told ends it by itself after a while. */
export async function endSessions(context: ClientContext): Promise<{ ended: number; unreachable: string[] }> {
  const sessions = await context.sessions.listSessions();
  const unreachable: string[] = [];
  if (sessions.length === 0) return { ended: 0, unreachable };
  const [{ createClient }, { FileServer }, { openChannel }, { isStatusError }, { Code }] = await Promise.all([
    import("#grpc/client.ts"),
    import("#proto/gen/grove/v1/file_server_pb.ts"),
    import("./server-address.ts"),
    import("./refusal.ts"),
    import("#grpc/status.ts"),
  ]);
  const profile = await context.storedProfile();
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
            signal: context.signal,
          },
        );
        ended++;
      } catch (error) {
        context.signal.throwIfAborted();
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

/** Nobody waits longer than this to sign out. */
const END_TIMEOUT_MS = 3_000;
