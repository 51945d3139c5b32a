// The verb `ls`: lists a folder.
import { Command, Option } from "commander";
import { stringify64 } from "#base/json64.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { forEachNamed } from "#client/connection/each-named.ts";
import { attrOf, listPages } from "#client/connection/listing.ts";
import { formatRemotePath, type TypedPath } from "#client/connection/remote-path.ts";
import { writeAll } from "#client/terminal/terminal.ts";
import { terminalJson } from "#client/terminal/terminal-text.ts";
import { type Attr, Sort } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { attrJson, longRow, rowName } from "./attr-text.ts";

interface LsFlags extends ClientFlags {
  readonly long?: boolean;
  readonly sort: keyof typeof SORTS;
  readonly reverse?: boolean;
}

const SORTS = {
  name: [Sort.NAME, Sort.NAME_DESC],
  size: [Sort.SIZE_DESC, Sort.SIZE],
  time: [Sort.MTIME_DESC, Sort.MTIME],
} as const;

/** Makes the parser of `grove ls`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("ls")
      .description("List a folder: the current one, or those that are named. Folders end in a slash.")
      .argument("[path...]", "folders or files; alice@example.com:/docs is one of another user")
      .option("-l, --long", "kind, size, time of change, whether it is shared, and name")
      .addOption(new Option("--sort <by>", "order").choices(["name", "size", "time"]).default("name"))
      .option("-r, --reverse", "the other way round"),
    [
      ["grove ls", "names in the current folder"],
      ["grove ls -l --sort size /photos", "the largest first, with sizes and times"],
      ["grove ls alice@example.com:/docs --json", "a folder that alice shares with you, for a program"],
    ],
  ).action((paths: string[], flags: LsFlags) =>
    host.run("ls", flags, (context) => list(context, paths, flags)),
  );
}

async function list(context: ClientContext, typed: readonly string[], flags: LsFlags): Promise<number> {
  const paths = typed.length === 0 ? ["."] : typed;
  let isFirst = true;
  return forEachNamed(context, "ls", paths, async (text) => {
    const path = await context.resolve(text);
    /** What stands above the rows of each of several folders. */
    const heading = (): readonly string[] => {
      if (paths.length === 1) return [];
      const above = isFirst ? [] : [""];
      isFirst = false;
      return [...above, `${formatRemotePath(path)}:`];
    };
    const printer = context.isJson ? new JsonPrinter(context, path) : new RowPrinter(context, flags, heading);
    await listOne(context, path, flags, printer);
  });
}

async function listOne(
  context: ClientContext,
  path: TypedPath,
  flags: LsFlags,
  printer: Printer,
): Promise<void> {
  const cluster = await context.cluster();
  const sort = SORTS[flags.sort][flags.reverse === true ? 1 : 0];
  try {
    for await (const page of listPages(cluster, path, { sort })) await printer.page(page);
  } catch (error) {
    // A file is listed as a single entry.
    if ((error as { code?: unknown }).code !== "NOT_DIRECTORY" || path.isFolder) throw error;
    await printer.page([await attrOf(cluster, path)]);
  }
  await printer.end();
}

interface Printer {
  page(entries: readonly Attr[]): Promise<void>;
  end(): Promise<void>;
}

class RowPrinter implements Printer {
  readonly #context: ClientContext;
  readonly #row: (attr: Attr) => string;
  /** Lines above the rows, once the folder is known to be there. */
  #heading: () => readonly string[];

  constructor(context: ClientContext, flags: LsFlags, heading: () => readonly string[]) {
    this.#context = context;
    this.#row = flags.long === true ? longRow : rowName;
    this.#heading = heading;
  }

  async page(entries: readonly Attr[]): Promise<void> {
    const heading = this.#heading();
    this.#heading = () => [];
    await this.#context.print(...heading, ...entries.map(this.#row));
  }

  async end(): Promise<void> {
    await this.page([]);
  }
}

/** Prints one document page by page, so that a folder of a million entries is never held as a whole. */
class JsonPrinter implements Printer {
  readonly #context: ClientContext;
  readonly #head: string;
  #isBegun = false;

  constructor(context: ClientContext, path: TypedPath) {
    this.#context = context;
    this.#head = `{"root":${JSON.stringify(path.root)},"path":${JSON.stringify(path.path)},"entries":[`;
  }

  async page(entries: readonly Attr[]): Promise<void> {
    if (entries.length === 0) return;
    const rows = entries.map((attr) => stringify64(attrJson(attr))).join(",\n");
    await this.#write(`${this.#isBegun ? ",\n" : `${this.#head}\n`}${rows}`);
    this.#isBegun = true;
  }

  async end(): Promise<void> {
    await this.#write(this.#isBegun ? "\n]}\n" : `${this.#head}]}\n`);
  }

  async #write(text: string): Promise<void> {
    const { signal, terminal } = this.#context;
    await writeAll(terminal.output, terminalJson(text), signal);
  }
}
