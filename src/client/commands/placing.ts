// Places the sources of `cp` and `mv`: under a new name, or into a folder.

import { shellWord } from "#base/shell-word.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import type { Cluster } from "#client/connection/cluster.ts";
import { forEachNamed } from "#client/connection/each-named.ts";
import { attrIfThere, isFolder } from "#client/connection/listing.ts";
import { baseName, childPath, formatRemotePath, type TypedPath } from "#client/connection/remote-path.ts";
import { ClientError, withHint } from "#client/terminal/client-error.ts";
import type { Attr } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { attrJson } from "./attr-text.ts";

/** The words of a verb's refusals. */
export interface PlacingWords {
  /** "cp". */
  readonly verb: string;
  /** "copy". */
  readonly infinitive: string;
  /** "copied". */
  readonly participle: string;
  /** Why nothing goes from one user's root to another's, and the alternative. */
  readonly otherRoot: { readonly message: string; readonly todo: string };
}

/** One source and its place. */
export interface Placement {
  readonly cluster: Cluster;
  readonly source: TypedPath;
  readonly targetPath: string;
}

/**
 * Places all but the last of the typed paths at the last one, one by one, and prints the results for
 * `--json`. Answers the exit code, and rejects with USAGE for an unsuitable target.
 */
export async function placeAll(
  context: ClientContext,
  typed: readonly string[],
  words: PlacingWords,
  place: (placement: Placement) => Promise<Attr>,
): Promise<number> {
  const { verb, infinitive, participle, otherRoot } = words;
  const last = typed.at(-1);
  if (last === undefined || typed.length < 2) {
    throw new ClientError("USAGE", `${verb} needs what to ${infinitive}, and where to`);
  }
  const target = await context.resolve(last);
  const cluster = await context.cluster();
  const there = await attrIfThere(cluster, target);
  const isInto = there !== undefined && isFolder(there);
  if (!isInto && (typed.length > 2 || target.isFolder)) {
    throw new ClientError("USAGE", `is not a folder to ${infinitive} into`, {
      about: formatRemotePath(target),
      todo: `Make it first: grove mkdir ${shellWord(formatRemotePath(target))}`,
    });
  }
  return forEachNamed(context, verb, typed.slice(0, -1), async (text) => {
    const source = await context.resolve(text);
    if (source.root !== target.root) {
      throw new ClientError("USAGE", otherRoot.message, { todo: otherRoot.todo });
    }
    const name = baseName(source.path);
    if (name === "") throw new ClientError("USAGE", `a root cannot be ${participle}`);
    const targetPath = isInto ? childPath(target.path, name) : target.path;
    const attr = await place({ cluster, source, targetPath }).catch(
      withHint("PATH_EXISTS", "Choose another name, or add --on-conflict keep-both or replace."),
    );
    if (context.isJson) await context.printJson(attrJson(attr));
  });
}
