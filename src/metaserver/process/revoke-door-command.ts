// `grove node revoke-door`: ends every credential that was used at a door since a moment.
import type { Command } from "commander";
import { systemClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { say, sayJson, type Terminal } from "#client/terminal/terminal.ts";
import { checkedId, type StoreFlags, withNodes, withStore } from "./ssh-node-command.ts";

interface RevokeFlags extends StoreFlags {
  readonly since: string;
}

/** Adds the verb to a command. */
export function addRevokeDoorVerb(root: Command, terminal: Terminal): void {
  withStore(
    root
      .command("revoke-door")
      .description(
        "End every app password that was used at a door since a moment, after the door was taken over. " +
          "Revoke its certificate first: grove ca revoke NAME.door.",
      )
      .argument("<name>", "the door's name", checkedId)
      .requiredOption("--since <time>", "such as 2026-12-01T08:00:00Z"),
  ).action((name: string, flags: RevokeFlags) => revokeDoor(name, flags, terminal));
}

async function revokeDoor(name: string, flags: RevokeFlags, terminal: Terminal): Promise<void> {
  const sinceMs = Date.parse(flags.since);
  if (Number.isNaN(sinceMs))
    throw new GroveError("BAD_ARGUMENT", "-since is a time such as 2026-12-01T08:00:00Z");
  await withNodes(flags, async (store) => {
    const ended = await store.revokeUsedAtDoor(name, sinceMs, Math.trunc(systemClock.wallMs()));
    const owners = [...new Set(ended.map(({ owner }) => owner))].toSorted();
    if (flags.json) return sayJson(terminal, { door: name, revoked: ended.length, users: owners });
    if (ended.length === 0) return say(terminal, `No app password was used at ${name} since then.`);
    say(terminal, `Revoked ${ended.length} app passwords; their users have to make others:`);
    say(terminal, ...owners.map((owner) => `  ${owner}`));
  });
}
