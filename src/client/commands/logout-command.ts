// The verb `logout`: ends the sessions and forgets the tokens.
import { Command } from "commander";
import { systemClock } from "#base/clock.ts";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { RouteCache } from "#client/connection/route-cache.ts";
import { endSessions, endSessionsEverywhere } from "#client/connection/sign-out.ts";
import { EXIT, type ExitCode } from "#client/terminal/exit-codes.ts";

interface LogoutFlags extends ClientFlags {
  readonly everywhere?: boolean;
}

/** Makes the parser of `grove logout`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("logout")
      .description(
        "Sign out: end the sessions of this machine and forget its tokens. The cluster's settings stay.",
      )
      .option("--everywhere", "end your sessions on all devices too; transfers in progress there stop"),
    [
      ["grove logout", "then 'grove login' signs in again, as anybody"],
      ["grove logout --everywhere", "a device was lost, or 'grove sessions' shows one that is not yours"],
    ],
  ).action((flags: LogoutFlags) =>
    host.run("logout", flags, async (context) => {
      const identity = await context.identity.current();
      const isEverywhere = flags.everywhere === true && identity !== undefined;
      const { ended, unreachable } = await (isEverywhere
        ? endSessionsEverywhere(context)
        : endSessions(context));
      await context.sessions.clear();
      await new RouteCache(context.config.routes, systemClock).clear();
      await context.place.clear();
      for (const address of unreachable) {
        context.note(
          isEverywhere
            ? `The server ${address} could not be asked: sessions there may go on. Sign in and do this again.`
            : `The server ${address} could not be told; the session there ends by itself.`,
        );
      }
      if (context.isJson) {
        await context.printJson({
          username: identity?.username ?? null,
          sessions_ended: ended,
          servers_not_reached: unreachable,
        });
      } else if (isEverywhere) {
        await context.print(
          `${identity.username} is signed out everywhere: ${ended} ${ended === 1 ? "session has" : "sessions have"} ended.`,
        );
      } else {
        await context.print(
          identity === undefined ? "Nobody was signed in." : `${identity.username} is signed out.`,
        );
      }
      return exitCode(isEverywhere, unreachable);
    }),
  );
}

/** This machine's sessions expire by themselves; a user's sessions elsewhere may stay open. */
function exitCode(isEverywhere: boolean, unreachable: readonly string[]): ExitCode {
  return isEverywhere && unreachable.length > 0 ? EXIT.network : EXIT.ok;
}
