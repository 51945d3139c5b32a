// The verb `logout`: ends the sessions and forgets the tokens.
import { Command } from "commander";
import { systemClock } from "#base/clock.ts";
import { type ClientFlags, withClientFlags } from "./client-flags.ts";
import { type CommandHost, processHost } from "./command-host.ts";
import { RouteCache } from "./route-cache.ts";
import { endSessions } from "./sign-out.ts";

/** Makes the parser of `grove logout`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("logout").description(
      "Sign out: end the sessions of this machine and forget its tokens. The cluster's settings stay.",
    ),
    [["grove logout", "then 'grove login' signs in again, as anybody"]],
  ).action((flags: ClientFlags) =>
    host.run("logout", flags, async (context) => {
      const identity = await context.identity.current();
      const { ended, unreachable } = await endSessions(context);
      await context.sessions.clear();
      await new RouteCache(context.config.routes, systemClock).clear();
      await context.place.clear();
      for (const address of unreachable) {
        context.note(`The server ${address} could not be told; the session there ends by itself.`);
      }
      if (context.isJson) {
        await context.printJson({ username: identity?.username ?? null, sessions_ended: ended });
      } else {
        await context.print(
          identity === undefined ? "Nobody was signed in." : `${identity.username} is signed out.`,
        );
      }
    }),
  );
}
