// The verb `roots`: lists the roots that the user can reach.
import { Command } from "commander";
import { handOverJson, handOverText } from "#client/administration/hand-over-text.ts";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";

/** Makes the parser of `grove roots`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("roots").description(
      "List the roots you can reach: your own first, then those of your groups and those shared with you, each with the server that holds it.",
    ),
    [
      ["grove roots", "who owns them, what is shared, where they live"],
      ["grove ls alice@example.com:/docs", "what one of the lines leads to"],
      ["grove roots --json", "the same for a program"],
    ],
  ).action((flags: ClientFlags) =>
    host.run("roots", flags, async (context) => {
      const roots = await (await context.cluster()).ask((router) => router.roots());
      if (context.isJson) {
        await context.printJson(
          roots.map((root) => ({
            owner: root.owner,
            root_id: root.rootId,
            path: root.path,
            fs_id: root.fsId,
            address: root.address,
            ...(root.groupRole === "" ? {} : { group_role: root.groupRole }),
            ...(root.handOvers.length === 0 ? {} : { hand_overs: root.handOvers.map(handOverJson) }),
          })),
        );
        return;
      }
      if (roots.length === 0) context.note("You have no root yet; the first upload makes one.");
      const width = Math.max(0, ...roots.map((root) => `${root.owner}:${root.path}`.length));
      await context.print(
        ...roots.flatMap((root) => [
          `${`${root.owner}:${root.path}`.padEnd(width)}  ${root.fsId}  ${root.address}`,
          ...(root.groupRole === "" ? [] : [`  a group's; your role is ${root.groupRole}`]),
          // In one's own root they name the others who reach it, in another's the reason for one's access.
          ...root.handOvers.map((handOver) => `  ${handOverText(handOver, handOver.to)}`),
        ]),
      );
    }),
  );
}
