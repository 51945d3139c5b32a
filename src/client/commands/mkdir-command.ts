// The verb `mkdir`: makes folders.
import { Command } from "commander";
import { splitPath } from "#base/names.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { forEachNamed } from "#client/connection/each-named.ts";
import { makeFolder } from "#client/connection/folders.ts";
import { childPath, type RemotePath } from "#client/connection/remote-path.ts";
import { withHint } from "#client/terminal/client-error.ts";
import { attrJson } from "./attr-text.ts";

interface MkdirFlags extends ClientFlags {
  readonly parents?: boolean;
}

/** Makes the parser of `grove mkdir`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("mkdir")
      .description("Make folders.")
      .argument("<path...>", "folders to be made")
      .option("-p, --parents", "make what is missing above them too; a folder that is there is no error"),
    [
      ["grove mkdir photos", "a folder in the current one"],
      ["grove mkdir -p /work/2026/autumn", "with all folders above it"],
    ],
  ).action((paths: string[], flags: MkdirFlags) =>
    host.run("mkdir", flags, (context) =>
      forEachNamed(context, "mkdir", paths, async (typed) =>
        make(context, await context.resolve(typed), flags.parents === true),
      ),
    ),
  );
}

async function make(context: ClientContext, place: RemotePath, withParents: boolean): Promise<void> {
  const cluster = await context.cluster();
  const names = withParents ? splitPath(place.path) : [];
  let above = "/";
  for (const name of names.slice(0, -1)) {
    above = childPath(above, name);
    await makeFolder(cluster, { root: place.root, path: above }, { mayExist: true });
  }
  if (withParents && names.length === 0) return;
  const attr = await makeFolder(cluster, place, { mayExist: withParents }).catch(
    withHint("NO_SUCH_PATH", "Add -p to make the folders above it too."),
  );
  if (context.isJson) await context.printJson(attrJson(attr));
}
