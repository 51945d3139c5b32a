// The verb `unlock`: lists and ends locks that programs hold while people edit.
import { Command } from "commander";
import type { ClientContext } from "#client/connection/client-context.ts";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { type Cluster, ONCE, SHORT } from "#client/connection/cluster.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { formatRemotePath, type TypedPath } from "#client/connection/remote-path.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import type { LockInfo } from "#wire/proto/gen/grove/v1/file_server_pb.ts";

interface UnlockFlags extends ClientFlags {
  readonly list?: boolean;
  readonly break?: boolean;
}

/** Makes the parser of `grove unlock`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("unlock")
      .description(
        "End locks that programs such as LibreOffice hold on a file or folder while somebody edits it. A lock that nobody renews ends by itself within an hour.",
      )
      .argument("[path]", "a file or folder", ".")
      .option("-l, --list", "list locks there and below: who holds them, and for how long yet")
      .option(
        "--break",
        "end the locks of others too; for the owner. What they have not saved is refused then",
      ),
    [
      ["grove unlock --list", "who has locked what in the current folder"],
      ["grove unlock report.odt", "your own lock, when the program that took it is gone"],
      ["grove unlock --break report.odt", "everybody's, on a file of yours"],
    ],
  ).action((typed: string, flags: UnlockFlags) =>
    host.run("unlock", flags, async (context) => {
      const place = await context.resolve(typed);
      const cluster = await context.cluster();
      if (flags.list === true) await list(context, cluster, place);
      else await unlock(context, cluster, place, flags.break === true);
    }),
  );
}

async function list(context: ClientContext, cluster: Cluster, place: TypedPath): Promise<void> {
  const locks = await locksAt(cluster, place, true);
  if (context.isJson) {
    await context.printJson({
      path: place.path,
      locks: locks.map(({ path, username, shared, deep, secondsLeft }) => ({
        path,
        user: username,
        shared,
        deep,
        seconds_left: secondsLeft,
      })),
    });
    return;
  }
  const width = Math.max(0, ...locks.map(({ path }) => path.length));
  await context.print(...locks.map((lock) => row(lock, width)));
  if (locks.length === 0) context.note("Nothing is locked there.");
}

async function unlock(
  context: ClientContext,
  cluster: Cluster,
  { root, path }: TypedPath,
  breaks: boolean,
): Promise<void> {
  let ended = 0;
  if (breaks) {
    const request = { root, path, breakLocks: true };
    const reply = await cluster.runAt({ root, path }, ONCE, (server) =>
      server.files.unlock(request, server.unary),
    );
    ({ ended } = reply);
  } else {
    const locks = await locksAt(cluster, { root, path }, false);
    for (const { token } of locks.filter((lock) => lock.token !== "")) {
      await cluster.runAt({ root, path }, ONCE, (server) =>
        server.files.unlock({ root, path, token }, server.unary),
      );
      ended++;
    }
    const others = locks.filter(({ token }) => token === "").map(({ username }) => username);
    if (ended === 0 && others.length > 0) {
      throw new ClientError("USAGE", `${path} is locked by ${others.join(", ")}, and not by you`, {
        todo: "On files of yours: grove unlock --break",
      });
    }
  }
  const where = formatRemotePath({ root, path });
  if (context.isJson) await context.printJson({ path, ended });
  else if (ended === 0) context.note(`${where} was not locked; nothing has changed.`);
  else await context.print(`${where} is no longer locked.`);
}

async function locksAt(
  cluster: Cluster,
  { root, path }: Pick<TypedPath, "path" | "root">,
  below: boolean,
): Promise<readonly LockInfo[]> {
  const { locks } = await cluster.runAt({ root, path }, SHORT, (server) =>
    server.files.listLocks({ root, path, below }, server.unary),
  );
  return locks;
}

function row({ path, username, deep, shared, secondsLeft }: LockInfo, width: number): string {
  const minutes = Math.ceil(secondsLeft / 60);
  const kind = `${shared ? ", with others" : ""}${deep ? ", with all below" : ""}`;
  return `${path.padEnd(width)}  ${username}${kind}, ${minutes} min yet`;
}
