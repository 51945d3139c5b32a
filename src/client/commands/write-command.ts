// The verb `write`: stores standard input.
import { Command } from "commander";
import { CHUNK_BYTES, FILE_MAX_BYTES } from "#base/limits.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { ONCE, SHORT } from "#client/connection/cluster.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import type { RemotePath } from "#client/connection/remote-path.ts";
import { byteCount } from "#client/terminal/byte-count.ts";
import { ClientError, localFailure } from "#client/terminal/client-error.ts";
import { isTty, readAll } from "#client/terminal/terminal.ts";
import { InputOnce } from "#client/transfer/input-once.ts";
import { uploadChunks } from "#client/transfer/upload.ts";
import type { Attr } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { OnExists } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { attrJson } from "./attr-text.ts";

interface WriteFlags extends ClientFlags {
  readonly offset?: number;
  readonly new?: boolean;
  readonly truncate?: number;
  readonly ifMatch?: string;
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
      .option("--truncate <bytes>", "read nothing; cut the file to this size, or grow it by zeros", byteCount)
      .option("--if-match <etag>", "only when the file still has this etag, which 'grove stat' shows")
      .option("--new", "refuse to replace a file that is there"),
    [
      ["echo hello | grove write hello.txt", "make or replace a file"],
      ["tar c src | grove write backup.tar", "of any size, nothing is kept on this machine"],
      ["printf X | grove write --offset 4 hello.txt", "change one byte"],
      ["grove write --truncate 0 hello.txt", "empty it"],
    ],
  ).action((typed: string, flags: WriteFlags) =>
    host.run("write", flags, async (context) => {
      const path = await context.resolve(typed);
      const attr = await store(context, path, flags);
      if (attr !== undefined && context.isJson) await context.printJson(attrJson(attr));
    }),
  );
}

function store(context: ClientContext, path: RemotePath, flags: WriteFlags): Promise<Attr | undefined> {
  const { truncate, offset, new: isNew = false } = flags;
  if (truncate !== undefined) {
    if (offset !== undefined || isNew) {
      throw new ClientError("USAGE", "--truncate goes with neither --offset nor --new");
    }
    return setSize(context, path, truncate, flags);
  }
  if (offset !== undefined && isNew) {
    throw new ClientError("USAGE", "--new does not go with --offset, which changes a file that is there");
  }
  if (isTty(context.terminal.input)) context.note("Type the content; Ctrl-D on an empty line ends it.");
  return offset === undefined ? replace(context, path, flags) : overwrite(context, path, offset, flags);
}

/** Bytes of standard input that are kept for a further attempt at its beginning. */
const INPUT_KEPT_BYTES = 2 * CHUNK_BYTES;

async function setSize(
  context: ClientContext,
  { root, path }: RemotePath,
  sizeBytes: number,
  { ifMatch = "" }: WriteFlags,
): Promise<Attr> {
  const cluster = await context.cluster();
  // Setting a size is idempotent; but with --if-match a second try would meet another etag.
  return cluster.runAt({ root, path }, ifMatch === "" ? SHORT : ONCE, (server) =>
    server.files.writeFile({ root, path, ifMatch, truncateSize: BigInt(sizeBytes) }, server.unary),
  );
}

async function replace(
  context: ClientContext,
  path: RemotePath,
  { new: isNew = false, ifMatch }: WriteFlags,
): Promise<Attr | undefined> {
  const cluster = await context.cluster();
  await using input = new InputOnce(inputChunks(context), INPUT_KEPT_BYTES);
  const response = await cluster.runAt(path, input, (server) =>
    uploadChunks(
      server,
      input,
      {
        ...path,
        sizeBytes: undefined,
        mtimeMs: 0,
        onExists: isNew ? OnExists.FAIL : OnExists.REPLACE,
        ...(ifMatch === undefined ? {} : { ifMatch }),
      },
      () => undefined,
    ),
  );
  return response.attr;
}

async function overwrite(
  context: ClientContext,
  path: RemotePath,
  start: number,
  flags: WriteFlags,
): Promise<Attr | undefined> {
  const cluster = await context.cluster();
  let attr: Attr | undefined;
  let offset = start;
  for await (const data of inputChunks(context)) {
    if (offset + data.length > FILE_MAX_BYTES)
      throw new ClientError("USAGE", "that is beyond the largest file");
    // Writing the same bytes is idempotent, unless the first try changed the expected etag.
    const ifMatch = flags.ifMatch === undefined ? "" : (attr?.etag ?? flags.ifMatch);
    attr = await cluster.runAt(path, ifMatch === "" ? SHORT : ONCE, (server) =>
      server.files.writeFile(
        { root: path.root, path: path.path, offset: BigInt(offset), ifMatch, data },
        server.unary,
      ),
    );
    offset += data.length;
  }
  return attr;
}

/** Standard input, whose failures are told in words. */
async function* told(
  input: NodeJS.ReadStream,
  signal: AbortSignal,
): AsyncGenerator<Buffer | string, void, undefined> {
  try {
    yield* readAll(input, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EISDIR") throw localFailure(error, "standard input");
    throw new ClientError("USAGE", "standard input is a folder, and a file is written from a file or a pipe");
  }
}

/** Standard input in chunks of 4,000,000 bytes, the last one shorter; none when it is empty. */
async function* inputChunks(context: ClientContext): AsyncGenerator<Buffer, void, undefined> {
  let slices: Buffer[] = [];
  let bytes = 0;
  for await (const piece of told(context.terminal.input, context.signal)) {
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
