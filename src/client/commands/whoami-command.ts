// The verb `whoami`: shows the signed-in user and the token's expiry.
import { Command } from "commander";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { SHORT } from "#client/connection/cluster.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { ClientError, isClientError } from "#client/terminal/client-error.ts";
import { localTime } from "#client/terminal/local-time.ts";

/** Makes the parser of `grove whoami`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("whoami").description(
      "Show who is signed in, on which server, and until when. The server is asked, so that what is shown is true.",
    ),
    [
      ["grove whoami", "who you are to the cluster"],
      ["grove whoami --json", "the same for a program"],
    ],
  ).action((flags: ClientFlags) =>
    host.run("whoami", flags, async (context) => {
      const identity = await context.identity.current();
      if (identity === undefined) throw new ClientError("SIGN_IN_NEEDED", "you are not signed in");
      const cluster = await context.cluster();
      let isReached = true;
      try {
        await cluster.run("", SHORT, (server) => server.files.getAttr({ path: "/" }, server.unary));
      } catch (error) {
        if (!isClientError(error, "NETWORK")) throw error;
        isReached = false;
        context.note("The server does not answer, so this is what was known last.");
      }
      const sessions = await context.sessions.listSessions();
      const tokenEnd = identity.idToken === undefined ? undefined : identity.expiresAtMs;
      if (context.isJson) {
        await context.printJson({
          username: identity.username,
          reached: isReached,
          id_token_remembered: identity.idToken !== undefined,
          id_token_expires_at: tokenEnd === undefined ? null : new Date(tokenEnd).toISOString(),
          sessions: sessions.map((session) => ({
            fileserver: session.address,
            root_id: session.rootId,
            expires_at: new Date(session.expiresAtMs).toISOString(),
          })),
        });
        return;
      }
      await context.print(
        identity.username,
        ...sessions.map(
          (session) => `  session on ${session.address} until ${localTime(session.expiresAtMs)}`,
        ),
      );
    }),
  );
}
