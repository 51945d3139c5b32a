// The verb `cp`: copies on the cluster, without a byte going through this machine.
import { Command, Option } from "commander";
import { OnConflict } from "#proto/gen/grove/v1/common_pb.ts";
import { attrJson } from "./attr-text.ts";
import type { ClientContext } from "./client-context.ts";
import { ClientError } from "./client-error.ts";
import { type ClientFlags, withClientFlags } from "./client-flags.ts";
import { ONCE } from "./cluster.ts";
import { type CommandHost, processHost } from "./command-host.ts";
import { attrIfThere, attrOf, isFolder } from "./listing.ts";
import { baseName, childPath, type TypedPath } from "./remote-path.ts";

interface CpFlags extends ClientFlags {
  readonly recursive?: boolean;
  readonly onConflict: keyof typeof CONFLICTS;
}

const CONFLICTS = {
  fail: OnConflict.FAIL,
  replace: OnConflict.REPLACE,
  "keep-both": OnConflict.RENAME,
} as const;

/** Makes the parser of `grove cp`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("cp")
      .description(
        "Copy files and folders on the cluster: nothing goes through this machine, and what is stored is shared, but it counts in full " +
          "in the quota. The last path is the new name, or a folder to copy into. A folder appears when all of it is there.",
      )
      .argument("<path...>", "what to copy, then where to")
      .option("-r, --recursive", "folders with all that is in them")
      .addOption(
        new Option("--on-conflict <way>", "what to do when the new name is taken")
          .choices(["fail", "replace", "keep-both"])
          .default("fail"),
      ),
    [
      ["grove cp plan.txt plan-2.txt", "a copy beside it"],
      ["grove cp -r photos /archive", "a folder with all that is in it, into another"],
      ["grove cp --on-conflict keep-both a.txt /inbox", "becomes 'a (2).txt' if there is one"],
    ],
  ).action((paths: string[], flags: CpFlags) =>
    host.run("cp", flags, (context) => copyAll(context, paths, flags)),
  );
}

async function copyAll(context: ClientContext, typed: readonly string[], flags: CpFlags): Promise<void> {
  const last = typed.at(-1);
  if (last === undefined || typed.length < 2) {
    throw new ClientError("USAGE", "cp needs what to copy, and where to");
  }
  const target = await context.resolve(last);
  const cluster = await context.cluster();
  const there = await attrIfThere(cluster, target);
  const isInto = there !== undefined && isFolder(there);
  if (!isInto && (typed.length > 2 || target.isFolder)) {
    throw new ClientError("USAGE", `${last} is not a folder to copy into`, {
      todo: "Make it first: grove mkdir",
    });
  }
  for (const text of typed.slice(0, -1)) {
    const source = await context.resolve(text);
    requireSameRoot(source, target);
    const name = baseName(source.path);
    if (name === "") throw new ClientError("USAGE", "a root cannot be copied");
    if (flags.recursive !== true && isFolder(await attrOf(cluster, source))) {
      throw new ClientError("USAGE", `${text} is a folder`, {
        todo: "Add -r to copy it with all that is in it.",
      });
    }
    const targetPath = isInto ? childPath(target.path, name) : target.path;
    const attr = await cluster.runAt(source, ONCE, (server) =>
      server.files.copy(
        { root: source.root, path: source.path, targetPath, onConflict: CONFLICTS[flags.onConflict] },
        // A large folder takes its time.
        server.stream,
      ),
    );
    if (context.isJson) await context.printJson(attrJson(attr));
  }
}

function requireSameRoot(source: TypedPath, target: TypedPath): void {
  if (source.root === target.root) return;
  throw new ClientError("USAGE", "nothing can be copied on the cluster from one user's root to another's", {
    todo: "Copy it with 'grove get' and 'grove put'.",
  });
}
