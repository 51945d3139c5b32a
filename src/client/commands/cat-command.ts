// The verb `cat`: prints files.
import { once } from "node:events";
import { Command } from "commander";
import type { ClientContext } from "#client/connection/client-context.ts";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { SHORT } from "#client/connection/cluster.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { forEachNamed } from "#client/connection/each-named.ts";
import { byteCount } from "#client/terminal/byte-count.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { isTty } from "#client/terminal/terminal.ts";
import { holdsTerminalControls } from "#client/terminal/terminal-text.ts";
import { downloadFile, type Range } from "#client/transfer/download.ts";
import type { SliceTaker } from "#wire/grpc/sliced.ts";

interface CatFlags extends ClientFlags {
  readonly raw?: boolean;
  readonly offset?: number;
  readonly length?: number;
}

/** Makes the parser of `grove cat`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("cat")
      .description(
        "Print files on standard output. To a terminal only text is printed, unless --raw is given.",
      )
      .argument("<path...>", "files on the cluster")
      .option("--raw", "print control characters to a terminal too")
      .option("--offset <bytes>", "start there", byteCount)
      .option("--length <bytes>", "print that many bytes at most", byteCount),
    [
      ["grove cat notes.txt", "to the terminal"],
      ["grove cat backup.tar | tar t", "into another program, checked on the way"],
      ["grove cat --offset 1000000 --length 512 log.txt", "a part of a large file"],
    ],
  ).action((paths: string[], flags: CatFlags) =>
    host.run("cat", flags, (context) =>
      forEachNamed(context, "cat", paths, (typed) => printFile(context, typed, flags)),
    ),
  );
}

async function printFile(context: ClientContext, typed: string, flags: CatFlags): Promise<void> {
  const path = await context.resolve(typed);
  const cluster = await context.cluster();
  const range: Range = { offset: flags.offset ?? 0, length: flags.length ?? 0 };
  if (flags.length === 0) return;
  const { output } = context.terminal;
  const isGuarded = isTty(output) && flags.raw !== true;
  let printed = 0;
  let last: number | undefined;
  const take: SliceTaker = (slice) => {
    if (isGuarded && holdsTerminalControls(slice, last)) {
      throw new ClientError("USAGE", `${path.path} is not text, so it is not printed to a terminal`, {
        todo: "Send it elsewhere (grove cat FILE > copy), or add --raw.",
      });
    }
    printed += slice.length;
    last = slice.at(-1) ?? last;
    // The slice's buffer is free again only after the write.
    if (output.write(slice) || !output.writable) return true;
    return once(output, "drain", { signal: context.signal }).then(() => undefined);
  };
  // Printed bytes cannot be taken back, so a file is retried only before its first printed byte.
  const patience = {
    ...SHORT,
    get isRepeatable(): boolean {
      return printed === 0;
    },
    get isConsumed(): boolean {
      return printed > 0;
    },
  };
  await cluster.runAt(path, patience, (server) => downloadFile(server, path, take, { range }));
}
