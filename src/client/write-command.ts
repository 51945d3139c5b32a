// The verb `write`: stores what comes on standard input.
import { Command } from "commander";
import { CHUNK_BYTES, FILE_MAX_BYTES } from "#base/limits.ts";
import type { Attr } from "#proto/gen/grove/v1/common_pb.ts";
import { OnExists } from "#proto/gen/grove/v1/common_pb.ts";
import { attrJson } from "./attr-text.ts";
import { byteCount } from "./byte-count.ts";
import type { ClientContext } from "./client-context.ts";
import { ClientError } from "./client-error.ts";
import { type ClientFlags, withClientFlags } from "./client-flags.ts";
import { INPUT, SHORT } from "./cluster.ts";
import { type CommandHost, processHost } from "./command-host.ts";
import type { RemotePath } from "./remote-path.ts";
import { isTty } from "./terminal.ts";
import { uploadChunks } from "./upload.ts";

interface WriteFlags extends ClientFlags {
  readonly offset?: number;
  readonly new?: boolean;
}

/** Makes the parser of `grove write`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("write")
      .description(
        "Store what comes on standard input in a file. A file that is there is replaced when all of it has arrived; " +
          "with --offset its bytes are overwritten from there on.",
      )
      .argument("<path>", "file on the cluster")
      .option("--offset <bytes>", "overwrite from there on, keeping the rest", byteCount)
      .option("--new", "refuse to replace a file that is there"),
    [
      ["echo hello | grove write hello.txt", "make or replace a file"],
      ["tar c src | grove write backup.tar", "of any size, nothing is kept on this machine"],
      ["printf X | grove write --offset 4 hello.txt", "change one byte"],
    ],
  ).action((typed: string, flags: WriteFlags) =>
    host.run("write", flags, async (context) => {
      const path = await context.resolve(typed);
      if (isTty(context.terminal.input)) context.note("Type the content; Ctrl-D on an empty line ends it.");
      const attr =
        flags.offset === undefined
          ? await replace(context, path, flags.new === true)
          : await overwrite(context, path, flags.offset);
      if (attr !== undefined && context.isJson) await context.printJson(attrJson(attr));
    }),
  );
}

async function replace(context: ClientContext, path: RemotePath, isNew: boolean): Promise<Attr | undefined> {
  const cluster = await context.cluster();
  // What has been read from standard input cannot be read again.
  const response = await cluster.runAt(path, INPUT, (server) =>
    uploadChunks(
      server,
      inputChunks(context),
      {
        ...path,
        sizeBytes: undefined,
        mtimeMs: 0,
        onExists: isNew ? OnExists.FAIL : OnExists.REPLACE,
      },
      () => undefined,
    ),
  );
  return response.attr;
}

async function overwrite(context: ClientContext, path: RemotePath, start: number): Promise<Attr | undefined> {
  const cluster = await context.cluster();
  let attr: Attr | undefined;
  let offset = start;
  for await (const data of inputChunks(context)) {
    if (offset + data.length > FILE_MAX_BYTES)
      throw new ClientError("USAGE", "that is beyond the largest file");
    // The same bytes at the same place: twice is as good as once.
    attr = await cluster.runAt(path, SHORT, (server) =>
      server.files.writeFile(
        { root: path.root, path: path.path, offset: BigInt(offset), data },
        server.unary,
      ),
    );
    offset += data.length;
  }
  return attr;
}

/** Standard input in chunks of 4,000,000 bytes, the last one shorter; none when it is empty. */
async function* inputChunks(context: ClientContext): AsyncGenerator<Buffer, void, undefined> {
  let slices: Buffer[] = [];
  let bytes = 0;
  for await (const piece of context.terminal.input as AsyncIterable<Buffer | string>) {
    context.signal.throwIfAborted();
    let rest = typeof piece === "string" ? Buffer.from(piece) : piece;
    while (bytes + rest.length >= CHUNK_BYTES) {
      slices.push(rest.subarray(0, CHUNK_BYTES - bytes));
      rest = rest.subarray(CHUNK_BYTES - bytes);
      yield Buffer.concat(slices);
      slices = [];
      bytes = 0;
    }
    if (rest.length > 0) slices.push(rest);
    bytes += rest.length;
  }
  if (bytes > 0) yield Buffer.concat(slices);
}
