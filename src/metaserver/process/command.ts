// The command `grove metaserver`: reads flags and environment, builds the real parts, runs until a signal.
import { hostname } from "node:os";
import { resolve } from "node:path";
import { Command, Option } from "commander";
import type { AuditSink } from "#base/audit-act.ts";
import { systemClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { METASERVER_PORT } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { METRICS_PORT_OFFSET, metricsPortOf } from "#base/metrics-port.ts";
import { formatHostPort, parseHostPort } from "#base/node-id.ts";
import { systemFraction, systemRandom } from "#base/random.ts";
import { currentRequestId } from "#base/request-scope.ts";
import { VERSION } from "#base/version.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { openDirectory } from "#metaserver/directory/open-directory.ts";
import { storeUrl } from "#metaserver/directory/store-url.ts";
import { type Running, run } from "#os/exit-signals.ts";
import { createLogger, LOG_LEVELS, type LogLevel, switchLevelOnSignal } from "#os/logger.ts";
import { makePrivateFolder } from "#os/private-folder.ts";
import type { OnUpgraded } from "#os/schema-copy.ts";
import type { StatusServer } from "#os/status-server.ts";
import { AuditLog } from "#security/audit/audit-log.ts";
import { openClusterIdFile } from "#security/authority/cluster-id-file.ts";
import { readPem } from "#security/authority/tls-material.ts";
import { doorTokens } from "#security/identity/door-tokens.ts";
import {
  type IdentitySettings,
  readIdentitySettings,
  requireServable,
} from "#security/identity/sign-in-variables.ts";
import { createTokenVerifier } from "#security/identity/token-verifier.ts";
import type { ListenAddress } from "#wire/grpc/server.ts";
import { administratorsOf } from "./administrator.ts";
import { type MetaCertificates, openCertificates } from "./certificates.ts";
import { parseDays, parseDoorUrl } from "./flag-values.ts";
import { openKnownNodesFile } from "./known-nodes-file.ts";
import { type RunningMetaServer, startMetaServer } from "./meta-server.ts";
import { SecurityReporter } from "./security-reporter.ts";
import { type StatusListenerDeps, startStatusListener } from "./status-listener.ts";
import { openTicketSigner } from "./ticket-signer.ts";

interface MetaServerFlags {
  readonly listen?: string;
  readonly controlListen?: string;
  readonly advertise?: string;
  readonly meta?: string;
  readonly metaFile?: string;
  readonly data: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tlsCa?: string;
  readonly caDir?: string;
  readonly certDays: number;
  readonly revoked?: string;
  readonly id: string;
  readonly metrics?: string;
  readonly mock?: boolean;
  readonly idpCa?: string;
  readonly doorUrl?: string;
  readonly groupsClaim?: string;
  readonly reflection?: boolean;
  readonly insecure?: boolean;
  readonly logFile?: string;
  readonly logLevel: LogLevel;
}

const EXAMPLES = `
Examples:
  grove metaserver -data /var/lib/grove/metaserver -ca_dir /var/lib/grove/ca -advertise meta.example.net:50050
  grove metaserver -data /var/lib/grove/metaserver -tls_cert m.crt -tls_key m.key -tls_ca ca.crt
  grove metaserver -data /var/lib/grove/metaserver -ca_dir /var/lib/grove/ca -meta postgres://grove@db1,db2/grove
  grove metaserver -mock -listen 127.0.0.1:50050      a trial without certificates; accepts mock tokens

Environment: IDP_CLIENT_ID with IDP_ISSUER or IDP_TOKENINFO_URL (whose ID tokens count), IDP_HOSTED_DOMAIN and
IDP_ALLOW_AUD_LIST (which of them), IDP_DOOR_CLIENT_ID (the doors' own client, for browsers), SVC_ADMIN_EMAIL,
ADMIN_PASSWORD_HASH or ADMIN_PASSWORD (who administers users and groups), SVC_AUTH_MOCK=1 (the same as -mock).
SIGUSR2 switches the log between debug and the level it was started with.`;

/** Makes the parser of `grove metaserver`. */
export function command(): Command {
  return new Command("metaserver")
    .description("Run the coordinator that knows where each root lives.")
    .option(
      "--listen <host:port>",
      `address to listen on (default: 0.0.0.0:${METASERVER_PORT}, without TLS and in mock mode 127.0.0.1:${METASERVER_PORT})`,
    )
    .option(
      "--control-listen <host:port>",
      "a second address for FileServers alone, to give them as -metaserver: no flood of the public one keeps them from it (default: none)",
    )
    .option("--advertise <host:port>", "address under which others reach it (default: the one above)")
    .option(
      "--meta <url>",
      "metadata store: sqlite:PATH, or postgres://USER@HOST/DATABASE for several MetaServers (default: metadata.db in the data folder)",
    )
    .option("--meta-file <file>", "file with that URL in its first line, for one that holds a password")
    .option("--data <folder>", "folder for its own files", "grove-metaserver")
    .option("--tls-cert <file>", "certificate of this server, PEM")
    .option("--tls-key <file>", "key of that certificate, PEM")
    .option("--tls-ca <file>", "authority of the cluster, whose certificates FileServers show, PEM")
    .option(
      "--ca-dir <folder>",
      "the cluster's authority ('grove ca init'): signs for nodes that join, renews, and issues this server's own certificate",
    )
    .option("--cert-days <days>", "life of the certificates that it signs", parseDays, 90)
    .option(
      "--revoked <file>",
      "serial numbers of certificates that no longer count (default: revoked in -ca_dir)",
    )
    .option("--id <id>", "name of this server in the certificate that it issues itself", "metaserver")
    .option(
      "--metrics <host:port>",
      `plain HTTP listener for /health, /ready and /metrics, or "off" (default: the gRPC port minus ${METRICS_PORT_OFFSET}, where it is free)`,
    )
    .option("--mock", "accept mock tokens and FileServers without certificates; for trials only")
    .option(
      "--idp-ca <file>",
      "authority of the identity provider's certificate when it is not a public one, PEM",
    )
    .option(
      "--door-url <url>",
      "public address of the doors, which users are told (default: none)",
      parseDoorUrl,
    )
    .option(
      "--groups-claim <claim>",
      "claim of ID tokens that names a person's groups, such as groups (default: none; members are added by hand)",
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
      switchLevelOnSignal(log);
      try {
        await run(() => start(flags, log), {
          onEvent: (event, detail) => log.info(event, detail === "" ? {} : { detail }),
        });
      } finally {
        await log.close();
      }
    });
}

function storeDeps(
  { metaFile }: MetaServerFlags,
  clusterId: string | undefined,
  log: Logger,
): Parameters<typeof openDirectory>[1] {
  return { clock: systemClock, urlFile: metaFile, clusterId, onUpgraded: told(log) };
}

/** Says where the metadata store from before an upgrade lies. */
function told(log: Logger): OnUpgraded {
  return (upgrade) => log.warn("store_upgraded", { ...upgrade });
}

async function start(flags: MetaServerFlags, log: Logger): Promise<Running> {
  const settings = { ...readIdentitySettings(process.env), groupsClaim: flags.groupsClaim };
  const mock = flags.mock === true || settings.mock;
  requireServable({ ...settings, mock });
  const hasTls = [flags.caDir, flags.tlsCert, flags.tlsKey, flags.tlsCa].some((flag) => flag !== undefined);
  const listen = listenAddress(flags, hasTls && !mock);
  warnOfGaps(settings, { mock, hasTls }, log);
  const idpCa = flags.idpCa === undefined ? undefined : await readPem(flags.idpCa);
  const folder = resolve(flags.data);
  makePrivateFolder(folder);
  const url = (await storeUrl(flags)) ?? `sqlite:${folder}/metadata.db`;
  const certificates = await openCertificates(
    { ...flags, listen: flags.listen, advertise: flags.advertise },
    folder,
    { clock: systemClock, log, random: systemFraction },
  );
  const clusterIdFile = await openClusterIdFile(folder);
  const { clusterId } = clusterIdFile;
  const directory = await openDirectory(url, storeDeps(flags, clusterId, log));
  let { port } = listen;
  const teller = new SecurityReporter({
    directory,
    // Several MetaServers may listen on the same address of their own machines.
    source: () => flags.advertise ?? `${hostname()}:${port}`,
    clock: systemClock,
    random: systemRandom,
    log,
  });
  const watched = { clock: systemClock, onSecurityEvent: teller.sink, log };
  // Ends in the opposite order, each part also when another fails.
  const ends = new AsyncDisposableStack();
  ends.defer(() => certificates.close());
  ends.defer(() => directory.close());
  let status: StatusServer | undefined;
  ends.defer(() => status?.close());
  try {
    const server = await startMetaServer({
      ...settings,
      directory,
      tokenVerifier: createTokenVerifier({ ...settings, mock, ca: idpCa, ...watched }),
      doorTokens: doorTokens(settings, { mock, ca: idpCa, ...watched }),
      administrators: administratorsOf(settings, watched),
      rememberCluster: (clusterId) => clusterIdFile.remember(clusterId),
      knownNodes: await openKnownNodesFile(folder),
      audit: await openAudit(folder, log, ends),
      clock: systemClock,
      log,
      listen,
      controlListen: controlAddress(flags, hasTls && !mock),
      tls: certificates.served(),
      certificates,
      mock,
      reflection: flags.reflection === true,
      ticketSigner: await openTicketSigner(folder, { clock: systemClock, random: systemRandom }),
      random: systemRandom,
      webdavUrl: flags.doorUrl,
    });
    ends.defer(() => server.stop());
    ends.defer(() => teller.close());
    ends.defer(reloadOnHangup(certificates, log));
    ({ port } = server.address);
    logServing(server, { ...flags, mock }, log);
    status = await startStatus(flags, { ...server, directory, certificates, log });
    // A restart heals a store that has failed for good; the process manager restarts the process.
    const ended = directory.failed.then((error) => Promise.reject(error));
    return { ended, stop: () => ends.disposeAsync() };
  } catch (error) {
    await ends.disposeAsync().catch((cause: unknown) => {
      log.error("not_all_ended", { error: errorText(cause) });
    });
    throw error;
  }
}

/** Opens the audit log; each line names the request that caused it. */
async function openAudit(dataFolder: string, log: Logger, ends: AsyncDisposableStack): Promise<AuditSink> {
  const auditLog = await AuditLog.open({ dataFolder, clock: systemClock, log });
  ends.defer(() => auditLog.close());
  return (act) => auditLog.append({ request: currentRequestId(), ...act });
}

function logServing(
  { address, controlAddress }: RunningMetaServer,
  { advertise, mock }: Pick<MetaServerFlags, "advertise" | "mock">,
  log: Logger,
): void {
  log.info("serving", {
    version: VERSION,
    address: formatHostPort(address),
    control_address: controlAddress === undefined ? undefined : formatHostPort(controlAddress),
    advertised: advertise ?? formatHostPort(address),
    mock,
  });
}

/** Address for nodes alone. Throws BAD_ARGUMENT when no node could prove its identity. */
function controlAddress(
  { controlListen }: MetaServerFlags,
  asksForCertificates: boolean,
): ListenAddress | undefined {
  if (controlListen === undefined) return undefined;
  if (!asksForCertificates) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "-control_listen needs certificates: -ca_dir, or -tls_cert with -tls_key and -tls_ca",
    );
  }
  return parseHostPort(controlListen);
}

/** SIGHUP reads the certificate files again; returns the function that ends this. */
function reloadOnHangup(certificates: MetaCertificates, log: Logger): () => void {
  const onHangup = (): void => {
    log.info("reload");
    void certificates.renewer?.reload();
  };
  process.on("SIGHUP", onHangup);
  return () => process.off("SIGHUP", onHangup);
}

/** The listener for /metrics. Only a requested one must start: another process may have the port. */
async function startStatus(
  flags: MetaServerFlags,
  parts: {
    readonly address: ListenAddress;
    readonly directory: Directory;
    readonly certificates: MetaCertificates;
    readonly log: Logger;
  },
): Promise<StatusServer | undefined> {
  const { address, directory, certificates, log } = parts;
  const port = metricsPortOf(address.port);
  if (flags.metrics === "off" || (flags.metrics === undefined && port < 1)) return undefined;
  const place =
    flags.metrics === undefined
      ? { host: address.host, port }
      : parseHostPort(flags.metrics.startsWith(":") ? `0.0.0.0${flags.metrics}` : flags.metrics, {
          allowZero: true,
        });
  const deps: StatusListenerDeps = {
    directory,
    certDaysLeft: () => certificates.renewer?.daysLeft ?? null,
    authorityEndsWallMs: certificates.authority?.notAfterWallMs,
    clock: systemClock,
    log,
  };
  try {
    const listener = await startStatusListener(deps, place);
    log.info("metrics", { address: formatHostPort(listener.address) });
    return listener;
  } catch (error) {
    if (flags.metrics !== undefined) throw error;
    log.warn("no_metrics", { error: errorText(error) });
    return undefined;
  }
}

/** Refuses to expose to other machines what is safe only on this one, unless a flag asks for it (C-06). */
function listenAddress(flags: MetaServerFlags, isSafe: boolean): ListenAddress {
  const text = flags.listen ?? `${isSafe ? "0.0.0.0" : "127.0.0.1"}:${METASERVER_PORT}`;
  const address = parseHostPort(text.startsWith(":") ? `0.0.0.0${text}` : text, { allowZero: true });
  const isLoopback = /^(?:127(?:\.\d+){3}|::1|localhost)$/.test(address.host);
  if (isSafe || isLoopback || flags.insecure === true) return address;
  throw new GroveError(
    "BAD_ARGUMENT",
    "without TLS, or in mock mode, whoever is on the way can be anybody: give -ca_dir, or -tls_cert, -tls_key and -tls_ca, " +
      "listen on 127.0.0.1, or add -insecure to allow it all the same",
  );
}

function warnOfGaps(
  settings: IdentitySettings,
  facts: { readonly mock: boolean; readonly hasTls: boolean },
  log: Logger,
): void {
  if (facts.mock) {
    log.warn("mock_mode", { text: "whoever reaches this port can be any user: for trials only" });
  } else if (!facts.hasTls) {
    log.warn("no_tls", {
      text: "without -ca_dir, or -tls_cert, -tls_key and -tls_ca, no FileServer can register",
    });
  }
  for (const text of settings.warnings) if (!facts.mock) log.warn("setting", { text });
}
