// The verb `import`: brings in what lies in a folder, on an SFTP or WebDAV server, or in a bucket.
import { readFile } from "node:fs/promises";
import { Command } from "commander";
import { systemClock } from "#base/clock.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { formatRemotePath } from "#client/connection/remote-path.ts";
import { ClientError, localFailure } from "#client/terminal/client-error.ts";
import { ProgressDisplay, ProgressMeter } from "#client/terminal/progress.ts";
import { askSecret } from "#client/terminal/prompt.ts";
import { arrivedText, commandLine, interrupted, resumeText } from "#client/transfer/transfer-messages.ts";
import { TransferReport } from "#client/transfer/transfer-report.ts";
import { UploadMemory } from "#client/transfer/upload-memory.ts";
import { readPrivateFile } from "#os/private-file.ts";
import { FolderSource } from "./folder-source.ts";
import { NO_REPORT, reportIn } from "./import-report.ts";
import { ImportRun } from "./import-run.ts";
import type { ImportSource } from "./import-source.ts";
import { S3Source } from "./s3-source.ts";
import { SftpSource } from "./sftp-source.ts";
import { type TypedSource, typedSource } from "./typed-source.ts";
import { WebDavSource } from "./webdav-source.ts";

interface ImportFlags extends ClientFlags {
  readonly checksum?: boolean;
  readonly dryRun?: boolean;
  readonly report?: string;
  readonly passwordFile?: string;
  readonly identity?: string;
  readonly knownHosts?: string;
  readonly sourceCa?: string;
  readonly quiet?: boolean;
}

/** Makes the parser of `grove import`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("import")
      .description(
        "Bring in all that lies in a folder, on an SFTP or WebDAV server, or in an S3 bucket, with its times of change. " +
          "Files that are there with the same size and time are left out, so the same command goes on after a cut, and " +
          "later brings what is new. Nothing is changed at the source, and nothing is removed here.",
      )
      .argument(
        "<source>",
        "a folder, sftp://USER@HOST/PATH, https://USER@HOST/PATH, or s3://BUCKET/PREFIX?…",
      )
      .argument("[path]", "folder on the cluster, made when it is missing; your root without it")
      .option("--checksum", "leave out files that are there with the same content, whatever their times")
      .option("--dry-run", "tell what would come, and change nothing")
      .option("--report <file>", "write what became of each file into a new CSV file")
      .option("--password-file <file>", "the WebDAV password; else it is asked for")
      .option("--identity <file>", "the key with which ssh signs in")
      .option("--known-hosts <file>", "hosts that ssh knows, in place of your own")
      .option("--source-ca <file>", "the authority of the source's certificate, in PEM")
      .option("-q, --quiet", "say nothing unless something fails"),
    [
      ["grove import /mnt/old-nas/alice /from-nas", "a folder, also of a mounted share"],
      [
        "grove import sftp://alice@old.example.org/home/alice",
        "by this machine's ssh, its keys and known hosts",
      ],
      [
        "grove import https://alice@cloud.example.org/remote.php/dav/files/alice/",
        "from WebDAV, as ownCloud has it",
      ],
      [
        "grove import 's3://photos?endpoint=https://s3.example.org&credentials=key.txt' /photos",
        "from a bucket",
      ],
    ],
  ).action((source: string, path: string | undefined, flags: ImportFlags) =>
    host.run("import", flags, (context) =>
      run(context, [source, ...(path === undefined ? [] : [path])], flags),
    ),
  );
}

async function run(context: ClientContext, words: readonly string[], flags: ImportFlags): Promise<number> {
  const [typed = "", path = "/"] = words;
  const wanted = typedSource(typed);
  const target = await context.resolve(path);
  const cluster = await context.cluster();
  await using source = await opened(context, wanted, flags);
  await using lines = flags.report === undefined ? NO_REPORT : await reportIn(flags.report);
  const meter = new ProgressMeter(systemClock);
  const isQuiet = flags.quiet === true;
  const verb = flags.dryRun === true ? "would be imported:" : "imported";
  const display = new ProgressDisplay(context.terminal, meter, verb, isQuiet || context.isJson);
  const report = new TransferReport(context, display, meter, { isQuiet });
  const again = commandLine("import", words, repeated(flags));
  try {
    await new ImportRun({
      cluster,
      source,
      meter,
      report,
      lines,
      memory: new UploadMemory(context.config.uploads),
      note: (text) => {
        if (!context.isJson) display.note(text);
      },
      target,
      byChecksum: flags.checksum === true,
      isDryRun: flags.dryRun === true,
    }).run();
  } catch (error) {
    display.stop();
    const arrived = arrivedText({ meter, report }, { where: formatRemotePath(target), verb: "sent" });
    if (context.signal.aborted) throw interrupted(arrived, again);
    if (meter.totalFiles > 0) context.note(`${arrived}. ${resumeText(again)}`);
    throw error;
  } finally {
    display.stop();
  }
  const code = await report.end(verb);
  if (report.hasFailed) context.note(`To import what is missing, type: ${again}`);
  return code;
}

async function opened(
  context: ClientContext,
  wanted: TypedSource,
  flags: ImportFlags,
): Promise<ImportSource> {
  const { signal } = context;
  switch (wanted.kind) {
    case "folder":
      return new FolderSource(wanted.path);
    case "sftp": {
      const files = { identityFile: flags.identity, knownHostsFile: flags.knownHosts };
      if (flags.knownHosts?.includes('"') === true) {
        throw new ClientError("USAGE", "ssh takes no file of known hosts with a quotation mark in its name");
      }
      return SftpSource.connect({ ...wanted.place, ...files }, signal);
    }
    case "webdav": {
      const { url, user } = wanted;
      const credentials =
        user === undefined ? undefined : { user, password: await password(context, url, flags) };
      return new WebDavSource(url, { credentials, ca: await sourceCa(flags), signal });
    }
    default: {
      const { caFile } = wanted.settings;
      const ca = caFile === undefined ? await sourceCa(flags) : await text(caFile);
      return new S3Source(wanted.settings, ca, signal);
    }
  }
}

async function password(context: ClientContext, url: URL, { passwordFile }: ImportFlags): Promise<string> {
  if (passwordFile === undefined)
    return askSecret(context.terminal, `Password for ${url.host}: `, context.signal);
  const content = await readPrivateFile(passwordFile);
  if (content === undefined) {
    throw new ClientError("LOCAL_NOT_FOUND", "there is no such file on this machine", {
      about: passwordFile,
    });
  }
  return content.split("\n", 1)[0] ?? "";
}

async function sourceCa({ sourceCa: path }: ImportFlags): Promise<string | undefined> {
  return path === undefined ? undefined : text(path);
}

async function text(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw localFailure(error, path);
  }
}

/** The flags that repeat the same import. A report is a new file each time. */
function repeated(flags: ImportFlags): Readonly<Record<string, string | boolean | undefined>> {
  const { checksum, identity, metaserver, fileserver, ca } = flags;
  return {
    checksum,
    "dry-run": flags.dryRun,
    "password-file": flags.passwordFile,
    identity,
    "known-hosts": flags.knownHosts,
    "source-ca": flags.sourceCa,
    metaserver,
    fileserver,
    ca,
  };
}
