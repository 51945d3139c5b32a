// Refuses a start that would serve a data folder as less than before: alone, without TLS, another node (D19).

import { GroveError } from "#base/errors.ts";
import {
  commandsToServe,
  lossesOf,
  type NodeRole,
  type PastRole,
  pastInWords,
} from "#security/authority/node-role.ts";
import type { FileServerOptions } from "./file-server-options.ts";

/** The role of a node with these settings. */
export function roleOf(options: FileServerOptions): NodeRole {
  const { id, metaservers, advertise, tls } = options;
  return { id, metaservers, advertise, hasTls: tls !== undefined };
}

/** Throws BAD_ARGUMENT for a start that loses a part of the folder's role, with commands that keep it. */
export function requireSameRole(past: PastRole, options: FileServerOptions): void {
  const losses = lossesOf(past, roleOf(options));
  if (losses.length === 0) return;
  const { dataFolder } = options;
  throw new GroveError(
    "BAD_ARGUMENT",
    `${dataFolder} was ${pastInWords(past)}, and this start would serve it ${losses.join(", ")}. Serve it as it was: ` +
      `${inARow(commandsToServe(past, dataFolder))}. If less is meant, add -new_role once`,
  );
}

/** Throws BAD_ARGUMENT for a joined folder without its private key, with commands for a new one. */
export function requireKey(past: PastRole, dataFolder: string): void {
  if (past.joined === undefined || past.hasKey) return;
  throw new GroveError(
    "BAD_ARGUMENT",
    `${dataFolder} was ${pastInWords(past)}, and its private key is not there, since a backup leaves it out. Get a certificate for a ` +
      `new one, the token on the MetaServer's host: ${inARow(commandsToServe(past, dataFolder))}`,
  );
}

function inARow(commands: readonly string[]): string {
  return commands.map((command) => `'${command}'`).join(", then ");
}
