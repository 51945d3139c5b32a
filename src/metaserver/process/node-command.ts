// `grove node`: adds machines to the cluster, with one-time tokens instead of keys copied by hand (D20).
import { hostname } from "node:os";
import { resolve } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import { systemClock } from "#base/clock.ts";
import { parseDuration } from "#base/duration.ts";
import { GroveError } from "#base/errors.ts";
import { JOIN_TOKEN_LIFETIME_MAX_MS, METASERVER_PORT } from "#base/limits.ts";
import { errorText } from "#base/log.ts";
import { checkedFileServerAddress, checkedNodeId, formatHostPort, parseHostPort } from "#base/node-id.ts";
import { note, processTerminal, say, sayJson, type Terminal } from "#client/terminal/terminal.ts";
import { openAuthority } from "#security/authority/authority.ts";
import { JoinTokens } from "#security/authority/join-tokens.ts";
import { addDrainVerb } from "./drain-node-command.ts";
import { collect } from "./flag-values.ts";
import { addLostVerb } from "./lost-node-command.ts";
import { addLostRootVerb } from "./lost-root-command.ts";
import { addRemoveVerb } from "./remove-node-command.ts";
import { addRevokeDoorVerb } from "./revoke-door-command.ts";
import { addSshVerbs } from "./ssh-node-command.ts";
import { readTokenText } from "./token-input.ts";

/** Default life of a join token: one hour (decision D20). */
const JOIN_TOKEN_LIFETIME_MS = 3_600_000;

interface TokenFlags {
  readonly caDir: string;
  readonly id?: string;
  readonly ttl: number;
  readonly host?: readonly string[];
  readonly json: boolean;
}

interface JoinFlags {
  readonly metaserver: string[];
  readonly data: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly id?: string;
  readonly advertise?: string;
  readonly host?: readonly string[];
  readonly again: boolean;
  readonly json: boolean;
}

const EXAMPLES = `
Examples:
  On the MetaServer's host, then on the new machine with the token on standard input:
    grove node token -ca_dir /var/lib/grove/ca -id n1 > n1.token
    grove node join -metaserver meta.example.net:50050 -data /srv/grove -advertise n1.example.net:50051 < n1.token
    grove fileserver -data /srv/grove

  On the MetaServer's host, so that the console may run actions on the machine:
    grove node add n1 svc@n1.example.net -meta sqlite:/srv/grove-meta/metadata.db

  A node that goes: its roots move away while it runs, and once it is stopped for good it is taken out:
    grove node drain n3 -meta sqlite:/srv/grove-meta/metadata.db
    grove node remove n3 -meta sqlite:/srv/grove-meta/metadata.db
    grove ca revoke n3 -ca_dir /var/lib/grove/ca

  When a node does not come back after the metadata store was lost, or a restored one lacks somebody's root:
    grove node lost n3 -meta sqlite:/srv/grove-meta/metadata.db
    grove node lost-root dave@example.com -meta sqlite:/srv/grove-meta/metadata.db

The token is good for one node and one hour, and carries the authority's fingerprint: the node proves that it speaks with the
right MetaServer before it sends anything. The node's private key is made in its data folder and never leaves it.`;

/** The parser of `grove node`. */
export function command(terminal: Terminal = processTerminal()): Command {
  const root = new Command("node")
    .summary("Bring a machine into the cluster, or take it out")
    .description("Bring a new machine into the cluster, or take one out.")
    .addHelpText("after", EXAMPLES);
  root
    .command("token")
    .description(
      "Make a one-time token for a node that is to join; runs on the host that has the authority's folder.",
    )
    .option("--ca-dir <folder>", "the authority's folder", "grove-ca")
    .option(
      "--id <id>",
      "the only node that it is for (default: the node chooses an id that is free)",
      checkedId,
    )
    .option(
      "--host <name>",
      "DNS name or address that the node's certificate may have; may be repeated (default: the node says which)",
      collect,
    )
    .addOption(
      new Option("--ttl <time>", "how long it is good: 30m, 1h, 7d at most")
        .argParser(parseTtl)
        .default(JOIN_TOKEN_LIFETIME_MS, "1h"),
    )
    .option("--json", "print JSON", false)
    .action((flags: TokenFlags) => makeToken(flags, terminal));
  root
    .command("join")
    .description(
      "Get this machine's first certificate with a token, and remember the cluster in the data folder.",
    )
    .requiredOption(
      "--metaserver <host:port,...>",
      "the MetaServers; the first one that answers signs",
      parseList,
    )
    .requiredOption("--data <folder>", "the node's data folder; made when missing")
    .option("--token-file <file>", "file with the token (default: standard input)")
    .option(
      "--token <token>",
      "the token itself; other users of this machine can see it, so better use a file",
    )
    .option("--id <id>", "the node's id (default: the token's, else this machine's name)", checkedId)
    .option(
      "--advertise <host:port>",
      "address that clients will be sent to; its host goes into the certificate",
      parseAdvertise,
    )
    .option("--host <name>", "further DNS name or address for the certificate; may be repeated", collect)
    .option("--again", "join again although this folder has a certificate that is still good", false)
    .option("--json", "print JSON", false)
    .action((flags: JoinFlags) => join(flags, terminal));
  addSshVerbs(root, terminal);
  addDrainVerb(root, terminal);
  addRemoveVerb(root, terminal);
  addLostVerb(root, terminal);
  addLostRootVerb(root, terminal);
  addRevokeDoorVerb(root, terminal);
  return root;
}

async function makeToken(flags: TokenFlags, terminal: Terminal): Promise<void> {
  const authority = await openAuthority(resolve(flags.caDir), { clock: systemClock });
  const tokens = new JoinTokens(authority.folder, systemClock);
  const ends = new Date(systemClock.wallMs() + flags.ttl).toISOString();
  const token = await tokens.make({
    fingerprint: authority.fingerprint,
    id: flags.id,
    hosts: flags.host,
    lifetimeMs: flags.ttl,
  });
  if (flags.json) {
    sayJson(terminal, { token, id: flags.id ?? null, ends });
    return;
  }
  // The token alone on standard output, for a file or a pipe.
  say(terminal, token);
  note(
    terminal,
    `good once, until ${ends}${flags.id === undefined ? "" : `, for ${flags.id}`}. On the new machine: grove node join -metaserver HOST:PORT -data FOLDER`,
  );
}

async function join(flags: JoinFlags, terminal: Terminal): Promise<void> {
  const token = await readTokenText(flags, terminal);
  // The other verbs call nobody: without what calls need, they start in two thirds of the time.
  const { joinCluster } = await import("./join-cluster.ts");
  const joined = await joinCluster({
    dataFolder: resolve(flags.data),
    metaservers: flags.metaserver,
    token,
    id: flags.id,
    fallbackId: hostname().split(".", 1)[0]?.toLowerCase() ?? "",
    advertise: flags.advertise,
    hosts: flags.host ?? [],
    again: flags.again,
    clock: systemClock,
  });
  const ends = new Date(joined.endsWallMs).toISOString();
  if (flags.json) {
    sayJson(terminal, { id: joined.id, ...joined.paths, ends });
    return;
  }
  say(
    terminal,
    `${joined.id} has joined: its certificate is good until ${ends.slice(0, 10)} and is renewed by itself.`,
    `Start it: grove fileserver -data ${flags.data}${flags.advertise === undefined ? " -advertise HOST:PORT" : ""}`,
  );
}

function checkedId(text: string): string {
  return checked(() => checkedNodeId(text));
}

function parseAdvertise(text: string): string {
  return checked(() => checkedFileServerAddress(text));
}

function parseList(text: string): string[] {
  return checked(() =>
    text.split(",").map((item) => {
      const address = item.trim();
      return formatHostPort(
        parseHostPort(/^[^:]+$/.test(address) ? `${address}:${METASERVER_PORT}` : address),
      );
    }),
  );
}

function parseTtl(text: string): number {
  const ttlMs = parseDuration(text) ?? 0;
  if (ttlMs > 0 && ttlMs <= JOIN_TOKEN_LIFETIME_MAX_MS) return ttlMs;
  throw new InvalidArgumentError("write a time such as 30m, 2h or 1d, at most 7d.");
}

/** Reports an invalid value as the command line's parser does. */
function checked<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof GroveError) throw new InvalidArgumentError(`${errorText(error)}.`);
    throw error;
  }
}
