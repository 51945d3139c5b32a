// The command `grove doctor`: finds problems of this machine as a client or a server's host.
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { parseBytes } from "#base/bytes.ts";
import { systemClock } from "#base/clock.ts";
import { FILESERVER_PORT } from "#base/limits.ts";
import { formatHostPort, parseHostPort } from "#base/node-id.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { parseAddresses } from "#client/signin/profile.ts";
import { providerFetch, readProviderAuthority } from "#client/signin/provider-trust.ts";
import { ClientError, localFailure } from "#client/terminal/client-error.ts";
import { storeUrl } from "#metaserver/directory/store-url.ts";
import { type Environment, readIdentitySettings } from "#security/identity/sign-in-variables.ts";
import { engineSettings } from "#storage/engine/engine-settings.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { authorityCheck, certificateFilesCheck } from "./certificates.ts";
import { clientChecks } from "./client-checks.ts";
import { clusterFileChecks } from "./cluster-file-checks.ts";
import { engineChecks } from "./engine-checks.ts";
import { environmentCheck } from "./environment-checks.ts";
import { parseEnvironmentFile } from "./environment-file.ts";
import { type Check, runChecks } from "./finding.ts";
import {
  diskCheck,
  folderCheck,
  nodeCheck,
  portRuleCheck,
  quotaFileCheck,
  storeCheck,
} from "./host-checks.ts";
import { providerChecks } from "./provider-checks.ts";
import { countStates, reportJson, reportLines } from "./report.ts";
import { roleCheck } from "./role-check.ts";
import { serverCheck, type Trust } from "./server-probe.ts";
import { sudoCheck } from "./sudo-check.ts";

const START_WITH_IDP_CA =
  "If it is an authority of your own, start every server with -idp_ca FILE, and give it to this command too.";

interface DoctorFlags extends ClientFlags {
  readonly data?: string;
  readonly cluster?: string;
  readonly listen?: string;
  readonly meta?: string;
  readonly metaFile?: string;
  readonly engine?: string;
  readonly engineFile?: string;
  readonly store?: string;
  readonly reserve?: bigint;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tlsCa?: string;
  readonly idpCa?: string;
  readonly envFile?: string;
  readonly actions: boolean;
}

/** Makes the parser of `grove doctor`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("doctor")
      .description(
        "Look for what is wrong: on a machine that uses a cluster, or with -data or -cluster on a host of one. Each check says what it " +
          "saw and what to do. Nothing is changed, no secret is shown; the exit code is 0 when nothing failed.",
      )
      .option("--data <folder>", "look at the FileServer or MetaServer that keeps its data there")
      .option("--cluster <file>", "look at all that 'grove up' runs: its cluster.json")
      .option(
        "--listen <host:port>",
        `where the FileServer listens (default: 127.0.0.1:${FILESERVER_PORT})`,
        parseListen,
      )
      .option("--meta <url>", "metadata store (default: metadata.db in the data folder of a MetaServer)")
      .option("--meta-file <file>", "file with that URL in its first line")
      .option("--engine <url>", "the shared engine's database, or")
      .option("--engine-file <file>", "file with that URL; and with -store")
      .option("--store <url>", "its bucket; writes, reads and removes a probe")
      .option("--reserve <bytes>", "the FileServer's reserve, when it is not 20 GiB", parseReserve)
      .option("--tls-cert <file>", "the server's certificate, with its")
      .option("--tls-key <file>", "key")
      .option("--tls-ca <file>", "the cluster's authority")
      .option("--idp-ca <file>", "the identity provider's authority")
      .option(
        "--env-file <file>",
        "the servers' variables as systemd reads them: NAME=VALUE lines (default: those of this shell)",
      )
      .option(
        "--actions",
        "look whether this user may run what the console's actions need: sudo -n -l",
        false,
      ),
    [
      ["grove doctor", "why can I not sign in, or not reach my files?"],
      [
        "sudo grove doctor -data /var/lib/grove/fileserver -env_file /etc/grove/fileserver.env",
        "a node's host",
      ],
      ["ssh svc@n1 /opt/grove/grove doctor -actions", "may the console's actions run on n1?"],
      ["grove doctor -cluster grove-data/cluster.json", "what 'grove up' runs"],
    ],
  ).action((flags: DoctorFlags) =>
    host.run("doctor", flags, async (context) => {
      const findings = await runChecks(await checksOf(context, flags));
      if (context.isJson) await context.printJson(reportJson(findings));
      else await context.print(...reportLines(findings));
      return countStates(findings).failed > 0 ? 1 : 0;
    }),
  );
}

async function checksOf(context: ClientContext, flags: DoctorFlags): Promise<Check[]> {
  if (flags.cluster !== undefined)
    return clusterFileChecks(await readText(flags.cluster), dirname(resolve(flags.cluster)));
  const rights = flags.actions ? [sudoCheck()] : [];
  const env =
    flags.envFile === undefined ? context.terminal.env : parseEnvironmentFile(await readText(flags.envFile));
  const engine = engineChecks(await engineSettings(flags, env), env);
  if (flags.data === undefined && flags.meta === undefined && flags.metaFile === undefined)
    return flags.actions || engine.length > 0
      ? [...engine, ...rights]
      : clientChecks(context, await authorityOf(flags));
  return [...(await hostChecks(flags, env)), ...engine, ...rights];
}

async function authorityOf({ idpCa }: DoctorFlags): Promise<string | undefined> {
  return idpCa === undefined ? undefined : readProviderAuthority(idpCa);
}

/** The checks of a server on this machine, by its flags and variables. */
async function hostChecks(flags: DoctorFlags, env: Environment): Promise<Check[]> {
  const folder = flags.data === undefined ? undefined : resolve(flags.data);
  const named = await storeUrl(flags);
  // A MetaServer's folder, unless its store is elsewhere: then the flag decides.
  const isMeta = folder === undefined || named !== undefined || existsSync(join(folder, "metadata.db"));
  const trust = await trustOf(flags);
  const idpCa = await authorityOf(flags);
  const metaservers = flags.metaserver === undefined ? [] : parseAddresses(flags.metaserver);
  const store =
    named ?? (isMeta && folder !== undefined ? `sqlite:${join(folder, "metadata.db")}` : undefined);
  return [
    ...(folder === undefined ? [] : [folderCheck(folder), diskCheck(folder, isMeta ? 0n : flags.reserve)]),
    ...(isMeta || folder === undefined ? [] : fileserverChecks(flags, folder, env, trust)),
    ...(store === undefined ? [] : [storeCheck(store)]),
    ...metaservers.map((address) =>
      serverCheck("metaserver", address, MetaServer.typeName, trust ?? { ca: undefined, mock: true }),
    ),
    ...certificateChecks(flags, isMeta ? undefined : folder),
    ...providerChecksOf(env, idpCa),
    environmentCheck(env),
  ];
}

function fileserverChecks(
  flags: DoctorFlags,
  folder: string,
  env: Environment,
  trust: Trust | undefined,
): Check[] {
  const address = flags.listen ?? `127.0.0.1:${FILESERVER_PORT}`;
  const token = env["SVC_METRICS_TOKEN"];
  return [
    roleCheck(folder),
    quotaFileCheck(folder),
    portRuleCheck(address),
    ...(trust === undefined ? [] : [serverCheck("fileserver", address, FileServer.typeName, trust)]),
    nodeCheck(`fileserver on ${address}`, address, token === "" ? undefined : token),
  ];
}

/** Undefined without an authority: the use of TLS is then unknown, and the plain metrics show the state. */
async function trustOf(flags: DoctorFlags): Promise<Trust | undefined> {
  const path = flags.tlsCa ?? flags.ca;
  if (path === undefined) return undefined;
  const ca = await readFile(path, "utf8").catch(() => undefined);
  // Its own check reports a defect.
  return ca === undefined ? undefined : { ca, mock: false };
}

function certificateChecks({ tlsCert, tlsKey, tlsCa }: DoctorFlags, fileserver: string | undefined): Check[] {
  if (tlsCert === undefined && tlsKey === undefined) return [];
  if (tlsCert === undefined || tlsKey === undefined || tlsCa === undefined) {
    throw new ClientError("USAGE", "-tls_cert, -tls_key and -tls_ca go together");
  }
  const wallMs = (): number => systemClock.wallMs();
  return [
    authorityCheck(tlsCa, wallMs),
    certificateFilesCheck({ cert: tlsCert, key: tlsKey, ca: tlsCa }, wallMs, fileserver),
  ];
}

/** The variables' own check reports defects of the variables. */
function providerChecksOf(env: Environment, idpCa: string | undefined): Check[] {
  try {
    const { issuer, tokeninfoUrl, mock } = readIdentitySettings(env);
    const asker = { fetch: providerFetch({ ca: undefined, idpCa }), nameAuthority: START_WITH_IDP_CA };
    return mock ? [] : providerChecks({ issuer, tokeninfoUrl }, asker);
  } catch {
    return [];
  }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw localFailure(error, path);
  }
}

function parseListen(text: string): string {
  try {
    const { host, port } = parseHostPort(text.startsWith(":") ? `127.0.0.1${text}` : text);
    // A server that listens on all addresses is called on this machine.
    return formatHostPort({ host: host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host, port });
  } catch {
    throw new InvalidArgumentError("write host:port.");
  }
}

function parseReserve(text: string): bigint {
  const bytes = parseBytes(text);
  if (bytes === undefined) throw new InvalidArgumentError('write bytes, or "20GiB".');
  return bytes;
}
