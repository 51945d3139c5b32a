// The verb `sessions`: lists the user's open sessions on a server, and ends single ones.
import { Command } from "commander";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { type Server, SHORT } from "#client/connection/cluster.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { localTime } from "#client/terminal/local-time.ts";
import type { Session } from "#wire/proto/gen/grove/v1/file_server_pb.ts";

interface SessionsFlags extends ClientFlags {
  readonly end?: string;
}

/** Makes the parser of `grove sessions`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("sessions")
      .description(
        "List the sessions that are open in your name on the server of your root: where from, since when, and until when. " +
          "One that you do not know is a reason for 'grove logout --everywhere'.",
      )
      .option("--end <id>", "end that session; what it is doing stops at its next chunk"),
    [
      ["grove sessions", "who is signed in as you"],
      ["grove sessions --json", "the same for a program"],
      ["grove sessions --end 0b5a1ff65f2c4c42", "throw that one out"],
    ],
  ).action((flags: SessionsFlags) =>
    host.run("sessions", flags, async (context) => {
      const cluster = await context.cluster();
      if (flags.end !== undefined) {
        const { end } = flags;
        const ended = await cluster.run("", SHORT, (server) => endOne(server, end));
        if (context.isJson) await context.printJson({ ended });
        else await context.print(`The session ${end} has ended.`);
        return;
      }
      const listed = await cluster.run("", SHORT, async (server) => ({
        address: server.address,
        ...(await server.files.listSessions({}, server.unary)),
      }));
      if (context.isJson) {
        const sessions = listed.sessions.map((session) => jsonOf(session, listed.address));
        await context.printJson({ fileserver: listed.address, sessions });
      } else {
        await context.print(...listed.sessions.flatMap(linesOf));
      }
    }),
  );
}

async function endOne(server: Server, sessionId: string): Promise<number> {
  const { ended } = await server.files.endSession({ sessionId }, server.unary);
  if (ended === 0) {
    throw new ClientError("USAGE", `no session of yours on ${server.address} has the id ${sessionId}`, {
      todo: "'grove sessions' shows them.",
    });
  }
  return ended;
}

function linesOf(session: Session): string[] {
  const device = session.deviceName === "" ? "an unnamed device" : session.deviceName;
  const current = session.current ? ", this one" : "";
  return [
    `${session.sessionId}  ${device}, from ${session.address}${current}`,
    `  since ${timeOf(session.createdAt)}, last used ${timeOf(session.lastUsedAt)}, ends ${timeOf(session.expiresAt)}`,
  ];
}

function jsonOf(session: Session, address: string): Record<string, unknown> {
  return {
    session_id: session.sessionId,
    fileserver: address,
    device_name: session.deviceName,
    address: session.address,
    client_id: session.clientId,
    client_version: session.clientVersion,
    created_at: isoOf(session.createdAt),
    last_used_at: isoOf(session.lastUsedAt),
    expires_at: isoOf(session.expiresAt),
    current: session.current,
  };
}

const timeOf = (seconds: bigint): string => localTime(Number(seconds) * 1_000);

/** Null for a server's value that is no time. */
function isoOf(seconds: bigint): string | null {
  const time = new Date(Number(seconds) * 1_000);
  return Number.isNaN(time.getTime()) ? null : time.toISOString();
}
