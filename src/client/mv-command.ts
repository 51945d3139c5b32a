// The verb `mv`: moves and renames.
import { Command, Option } from "commander";
import { OnConflict } from "#proto/gen/grove/v1/common_pb.ts";
import { attrJson } from "./attr-text.ts";
import type { ClientContext } from "./client-context.ts";
import { ClientError } from "./client-error.ts";
import { type ClientFlags, withClientFlags } from "./client-flags.ts";
import { ONCE } from "./cluster.ts";
import { type CommandHost, processHost } from "./command-host.ts";
import { attrIfThere, isFolder } from "./listing.ts";
import { baseName, childPath, type TypedPath } from "./remote-path.ts";

interface MvFlags extends ClientFlags {
  readonly onConflict: keyof typeof CONFLICTS;
}

const CONFLICTS = {
  fail: OnConflict.FAIL,
  replace: OnConflict.REPLACE,
  "keep-both": OnConflict.RENAME,
} as const;

/** Makes the parser of `grove mv`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("mv")
      .description(
        "Move or rename files and folders. The last path is the new name, or a folder to move into.",
      )
      .argument("<path...>", "what to move, then where to")
      .addOption(
        new Option("--on-conflict <way>", "what to do when the new name is taken")
          .choices(["fail", "replace", "keep-both"])
          .default("fail"),
      ),
    [
      ["grove mv draft.txt final.txt", "rename"],
      ["grove mv a.txt b.txt archive/", "move into a folder"],
      ["grove mv --on-conflict keep-both a.txt /inbox", "becomes 'a (2).txt' if there is one"],
    ],
  ).action((paths: string[], flags: MvFlags) =>
    host.run("mv", flags, (context) => moveAll(context, paths, flags)),
  );
}

async function moveAll(context: ClientContext, typed: readonly string[], flags: MvFlags): Promise<void> {
  const last = typed.at(-1);
  if (last === undefined || typed.length < 2) {
    throw new ClientError("USAGE", "mv needs what to move, and where to");
  }
  const target = await context.resolve(last);
  const cluster = await context.cluster();
  const there = await attrIfThere(cluster, target);
  const isInto = there !== undefined && isFolder(there);
  if (!isInto && (typed.length > 2 || target.isFolder)) {
    throw new ClientError("USAGE", `${last} is not a folder to move into`, {
      todo: "Make it first: grove mkdir",
    });
  }
  for (const text of typed.slice(0, -1)) {
    const source = await context.resolve(text);
    requireSameRoot(source, target);
    const name = baseName(source.path);
    if (name === "") throw new ClientError("USAGE", "a root cannot be moved");
    const targetPath = isInto ? childPath(target.path, name) : target.path;
    const attr = await cluster.runAt(source, ONCE, (server) =>
      server.files.rename(
        { root: source.root, path: source.path, targetPath, onConflict: CONFLICTS[flags.onConflict] },
        server.unary,
      ),
    );
    if (context.isJson) await context.printJson(attrJson(attr));
  }
}

function requireSameRoot(source: TypedPath, target: TypedPath): void {
  if (source.root === target.root) return;
  throw new ClientError("USAGE", "nothing can be moved from one user's root to another's", {
    todo: "Copy it with 'grove get' and 'grove put', then remove it.",
  });
}
