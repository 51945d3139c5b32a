// The command `grove metaserver`: reads flags and environment, builds the real parts, runs until a signal.

import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { Command, Option } from "commander";
import { systemClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { METASERVER_PORT } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { formatHostPort, parseHostPort } from "#base/node-id.ts";
import type { SecurityEventSink } from "#base/security-event.ts";
import { VERSION } from "#base/version.ts";
import { openDirectory } from "#directory/open-directory.ts";
import type { ListenAddress, ServerTls } from "#grpc/server.ts";
import { type IdentitySettings, readIdentitySettings, requireServable } from "#identity/settings.ts";
import { createTokenVerifier } from "#identity/token-verifier.ts";
import { type Running, run } from "#os/exit-signals.ts";
import { createLogger, LOG_LEVELS, type LogLevel } from "#os/logger.ts";
import { makePrivateFolder } from "#os/private-folder.ts";
import { openClusterIdFile } from "./cluster-id-file.ts";
import { startMetaServer } from "./meta-server.ts";

interface MetaServerFlags {
  readonly listen?: string;
  readonly advertise?: string;
  readonly meta?: string;
  readonly data: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tlsCa?: string;
  readonly mock?: boolean;
  readonly idpCa?: string;
  readonly reflection?: boolean;
  readonly insecure?: boolean;
  readonly logFile?: string;
  readonly logLevel: LogLevel;
}

const EXAMPLES = `
Examples:
  grove metaserver -data /var/lib/grove/metaserver -tls_cert m.crt -tls_key m.key -tls_ca ca.crt
  grove metaserver -mock -listen 127.0.0.1:50050      a trial without certificates; accepts mock tokens

Environment: IDP_CLIENT_ID and IDP_ISSUER or IDP_TOKENINFO_URL for sign-in, SVC_AUTH_MOCK=1 for -mock.`;

/** Makes the parser of `grove metaserver`. */
export function command(): Command {
  return new Command("metaserver")
    .description("Run the coordinator that knows where each root lives")
    .option(
      "--listen <host:port>",
      `address to listen on (default: 0.0.0.0:${METASERVER_PORT}, without TLS and in mock mode 127.0.0.1:${METASERVER_PORT})`,
    )
    .option("--advertise <host:port>", "address under which others reach it (default: the one above)")
    .option("--meta <url>", "metadata store, sqlite:PATH (default: metadata.db in the data folder)")
    .option("--data <folder>", "folder for its own files", "grove-metaserver")
    .option("--tls-cert <file>", "certificate of this server, PEM")
    .option("--tls-key <file>", "key of that certificate, PEM")
    .option("--tls-ca <file>", "authority of the cluster, whose certificates FileServers show, PEM")
    .option("--mock", "accept mock tokens and FileServers without certificates; for trials only")
    .option(
      "--idp-ca <file>",
      "authority of the identity provider's certificate when it is not a public one, PEM",
    )
    .option("--insecure", "serve without TLS, or in mock mode, where other machines can reach it")
    .option("--log-file <file>", "write the log there instead of standard error")
    .addOption(new Option("--log-level <level>", "how much to log").choices(LOG_LEVELS).default("info"))
    .option("--reflection", "let gRPC tools ask for the protocol")
    .addHelpText("after", EXAMPLES)
    .action(async (flags: MetaServerFlags) => {
      const log = createLogger({
        destination: flags.logFile === undefined ? "stderr" : { file: flags.logFile },
        level: flags.logLevel,
        fields: { role: "metaserver" },
      });
      try {
        await run(() => start(flags, log), {
          onEvent: (event, detail) => log.info(event, detail === "" ? {} : { detail }),
        });
      } finally {
        await log.close();
      }
    });
}

async function start(flags: MetaServerFlags, log: Logger): Promise<Running> {
  const settings = readIdentitySettings(process.env);
  const mock = flags.mock === true || settings.mock;
  requireServable({ ...settings, mock });
  const tls = await readTls(flags);
  const listen = listenAddress(flags, tls !== undefined && !mock);
  warnOfGaps(settings, { mock, hasTls: tls !== undefined }, log);
  const idpCa = flags.idpCa === undefined ? undefined : await readPem(flags.idpCa);
  const folder = resolve(flags.data);
  makePrivateFolder(folder);
  const clusterIdFile = await openClusterIdFile(folder);
  const directory = await openDirectory(flags.meta ?? `sqlite:${folder}/metadata.db`, { clock: systemClock });
  try {
    if (clusterIdFile.clusterId !== undefined) await directory.adoptClusterId(clusterIdFile.clusterId);
    const server = await startMetaServer({
      directory,
      tokenVerifier: createTokenVerifier({
        ...settings,
        mock,
        clock: systemClock,
        ca: idpCa,
        onSecurityEvent: securityLog(log),
      }),
      rememberCluster: (clusterId) => clusterIdFile.remember(clusterId),
      clock: systemClock,
      log,
      listen,
      tls,
      mock,
      reflection: flags.reflection === true,
    });
    const address = formatHostPort(server.address);
    log.info("serving", { version: VERSION, address, advertised: flags.advertise ?? address, mock });
    // A store that has failed for good recovers by a restart, which is whoever started us's affair.
    const ended = directory.failed.then((error) => Promise.reject(error));
    return { stop: () => server.stop(), ended };
  } catch (error) {
    await directory.close();
    throw error;
  }
}

/** Refuses to let other machines reach what is only safe on this one, unless that was asked for (C-06). */
function listenAddress(flags: MetaServerFlags, isSafe: boolean): ListenAddress {
  const text = flags.listen ?? `${isSafe ? "0.0.0.0" : "127.0.0.1"}:${METASERVER_PORT}`;
  const address = parseHostPort(text.startsWith(":") ? `0.0.0.0${text}` : text, { allowZero: true });
  const isLoopback = /^(?:127(?:\.\d+){3}|::1|localhost)$/.test(address.host);
  if (isSafe || isLoopback || flags.insecure === true) return address;
  throw new GroveError(
    "BAD_ARGUMENT",
    "without TLS, or in mock mode, whoever is on the way can be anybody: give -tls_cert, -tls_key and -tls_ca, " +
      "listen on 127.0.0.1, or add -insecure to allow it all the same",
  );
}

async function readTls(
  flags: MetaServerFlags,
): Promise<Omit<ServerTls, "requestClientCertificate"> | undefined> {
  const { tlsCert, tlsKey, tlsCa } = flags;
  if (tlsCert === undefined && tlsKey === undefined && tlsCa === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined || tlsCa === undefined) {
    throw new GroveError("BAD_ARGUMENT", "TLS needs all three of -tls_cert, -tls_key and -tls_ca");
  }
  const [cert, key, ca] = await Promise.all([tlsCert, tlsKey, tlsCa].map(readPem));
  return cert === undefined || key === undefined || ca === undefined ? undefined : { cert, key, ca };
}

async function readPem(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw new GroveError("BAD_ARGUMENT", `cannot read ${path}: ${errorText(cause)}`, { cause });
  }
}

/** A MetaServer has no listener for security events: they stand in its log, a fatal one as an error (spec 5.7). */
function securityLog(log: Logger): SecurityEventSink {
  return ({ type, fatal, ipSeen }) =>
    log[fatal === true ? "error" : "warn"]("security_event", {
      type,
      fatal: fatal === true,
      ip_seen: ipSeen,
    });
}

function warnOfGaps(
  settings: IdentitySettings,
  facts: { readonly mock: boolean; readonly hasTls: boolean },
  log: Logger,
): void {
  if (facts.mock) {
    log.warn("mock_mode", { text: "whoever reaches this port can be any user: for trials only" });
  } else if (!facts.hasTls) {
    log.warn("no_tls", { text: "without -tls_cert, -tls_key and -tls_ca no FileServer can register" });
  }
  for (const text of settings.warnings) if (!facts.mock) log.warn("setting", { text });
}
