// `grove fileserver`: reads flags and environment, starts a storage node, and stops it on a signal.
import { hostname } from "node:os";
import { Command, InvalidArgumentError } from "commander";
import { formatBytes, parseBytes } from "#base/bytes.ts";
import { parseDuration } from "#base/duration.ts";
import { GroveError } from "#base/errors.ts";
import { DISK_RESERVE_BYTES, FILESERVER_PORT } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { checkedMetricsPortOf } from "#base/metrics-port.ts";
import { isLoopbackAddress } from "#base/network.ts";
import {
  checkedFileServerAddress,
  checkedNodeId,
  formatHostPort,
  type HostPort,
  parseHostPort,
} from "#base/node-id.ts";
import {
  type LimitFlags,
  limitsOf,
  movedLimits,
  withLimitFlags,
} from "#fileserver/operations/service-limits.ts";
import { TRASH_MIN_AGE_MS, TRASH_RETENTION_MS } from "#fileserver/operations/trash-reaper.ts";
import { run } from "#os/exit-signals.ts";
import { createLogger, switchLevelOnSignal } from "#os/logger.ts";
import { joinedTlsPaths } from "#security/authority/joined-node.ts";
import {
  lossesOf,
  type PastRole,
  pastInWords,
  readPastRole,
  writeNodeRole,
} from "#security/authority/node-role.ts";
import { readPem, tlsPathsOf } from "#security/authority/tls-material.ts";
import { type IdentitySettings, readIdentitySettings } from "#security/identity/sign-in-variables.ts";
import { type EngineFlags, engineSettings } from "#storage/engine/engine-settings.ts";
import { withEngineFlags } from "./engine-flags.ts";
import { startFileServer } from "./file-server.ts";
import type { FileServerOptions } from "./file-server-options.ts";
import { LOOPS_MAX, loopsFor, parseLoops } from "./loops-flag.ts";
import { requireKey, requireSameRole, roleOf } from "./same-role.ts";
import { type ScrubFlags, scrubSettings, withScrubFlags } from "./scrub-flags.ts";

/** From the end of one recount of all counters to the start of the next (decision D16). */
const RECOUNT_PAUSE_MS: number = 60 * 60_000;
/** Rows that the recount reads per second: 10 million files in some 25 minutes, without slowing others. */
const RECOUNT_ROWS_PER_SECOND = 16_384;

interface Flags extends EngineFlags, LimitFlags, ScrubFlags {
  readonly data: string;
  readonly id?: string;
  readonly name?: string;
  readonly listen?: HostPort;
  readonly advertise?: string;
  readonly metaserver?: string[];
  readonly reserve?: bigint;
  readonly trashRetention?: number;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tlsCa?: string;
  readonly idpCa?: string;
  readonly reflection: boolean;
  readonly loops?: number;
  readonly passwordPath: boolean;
  readonly mock: boolean;
  readonly insecure: boolean;
  readonly newRole: boolean;
  readonly logFile?: string;
  readonly logLevel: "debug" | "info" | "warn" | "error";
}

const EXAMPLES = `
Examples:
  A node alone on this machine, with mock sign-in, to try things out:
    grove fileserver -mock -data ./node1

  A node that has joined a cluster ('grove node join'):
    grove fileserver -data /srv/grove

  A node of a cluster, with certificates of its own:
    grove fileserver -data /srv/grove -id n1 -listen :50051 -advertise n1.example.net:50051 \\
      -metaserver meta.example.net:50050 -tls_cert n1.pem -tls_key n1.key -tls_ca cluster-ca.pem

Environment: IDP_CLIENT_ID with IDP_ISSUER or IDP_TOKENINFO_URL (whose ID tokens count), IDP_HOSTED_DOMAIN and
IDP_ALLOW_AUD_LIST (which of them), SVC_ADMIN_EMAIL, ADMIN_PASSWORD_HASH or ADMIN_PASSWORD (who may set quotas),
SVC_METRICS_TOKEN (guards what /metrics tells of users), SVC_AUTH_MOCK=1 (the same as -mock).

The metrics listener (/metrics, /health, /ready) is plain HTTP on the gRPC port minus 41000.
Stop with Ctrl-C or SIGTERM: running transfers have 15 seconds to finish.
SIGUSR2 switches the log between debug and the level it was started with.`;

/** The parser of `grove fileserver`. */
export function command(): Command {
  const parser = new Command("fileserver")
    .summary("Run a storage node")
    .description(
      "Run a storage node: it keeps the files of user roots, their quotas, and the sessions of its users.",
    )
    .requiredOption("--data <folder>", "where everything is kept; made when missing, one process at a time")
    .option(
      "--id <id>",
      "name of this node in the cluster, as in its certificate (default: that of 'grove node join', else this machine's name)",
    )
    .option("--name <name>", "name of this node for people (default: its id)")
    .option(
      "--listen <host:port>",
      `gRPC address; the port must be above 41000 (default: :${FILESERVER_PORT}, without TLS and with mock sign-in 127.0.0.1:${FILESERVER_PORT})`,
      parseListen,
    )
    .option(
      "--advertise <host:port>",
      "address that clients are sent to (default: that of 'grove node join', else the one listened on; for all addresses, this machine's name)",
      parseAdvertise,
    )
    .option(
      "--metaserver <host:port,...>",
      "the coordinator (default: that of 'grove node join'); without one the node stands alone and makes every root itself",
      parseList,
    )
    .option(
      "--reserve <bytes>",
      `free space that no write may consume (default: ${DISK_RESERVE_BYTES}, 20 GiB)`,
      parseReserve,
    )
    .option(
      "--trash-retention <span>",
      "how long the trash is kept, such as 7d, at least 1d; 0 keeps it until space is needed (default: 30d)",
      parseRetention,
    )
    .option(
      "--tls-cert <file>",
      "certificate of this node, PEM (these three: what 'grove node join' put into the data folder)",
    )
    .option("--tls-key <file>", "its private key, PEM")
    .option("--tls-ca <file>", "certificate of the cluster's authority, PEM")
    .option(
      "--idp-ca <file>",
      "authority of the identity provider's certificate when it is not a public one, PEM",
    )
    .option("--reflection", "let clients ask for the protocol (grpcurl and others)", false)
    .option(
      "--loops <number>",
      `threads that serve connections, 1 to ${LOOPS_MAX} (default: 1 below four cores, off Linux and with -engine, else half of the cores)`,
      (text: string) => parseLoops(text),
    )
    .option("--no-password-path", "refuse SetQuota by x-admin-password-hash; SVC_ADMIN_EMAIL still may")
    .option("--mock", "accept mock tokens instead of real ones; for trials only", false)
    .option("--insecure", "serve without TLS, or with mock sign-in, where other machines can reach it", false)
    .option(
      "--new-role",
      "serve the folder although it was a cluster's, had TLS or another id, and this start has not; once, then leave it out",
      false,
    )
    .option("--log-file <file>", "write the log there instead of standard error")
    .option("--log-level <level>", "debug, info, warn or error", parseLevel, "info")
    .addHelpText("after", EXAMPLES)
    .action(async (flags: Flags) => {
      await serve(flags, process.env);
    });
  return withLimitFlags(withScrubFlags(withEngineFlags(parser)));
}

async function serve(flags: Flags, env: Readonly<Record<string, string | undefined>>): Promise<void> {
  const identity = readIdentitySettings(flags.mock ? { ...env, SVC_AUTH_MOCK: "1" } : env);
  const { options, past } = await optionsOf(flags, identity, env["SVC_METRICS_TOKEN"]);
  // First: a folder with certificates in the past is not answered with a hint at -insecure.
  if (!flags.newRole) requireSameRole(past, options);
  const hasTls = options.tls !== undefined;
  requireSafe(options.listen, { hasTls, isMock: identity.mock, isAllowed: flags.insecure });
  const log = createLogger({
    destination: flags.logFile === undefined ? "stderr" : { file: flags.logFile },
    level: flags.logLevel,
    fields: { role: "fileserver", node: options.id },
  });
  switchLevelOnSignal(log);
  for (const warning of identity.warnings) log.warn("setting", { warning });
  warnOfDeviations(options, log);
  const losses = lossesOf(past, roleOf(options));
  if (losses.length > 0) log.warn("new_role", { was: pastInWords(past), now: losses.join(", ") });
  try {
    await run(
      async () => {
        const node = await startFileServer(options, { log });
        await writeNodeRole(options.dataFolder, roleOf(options)).catch((error: unknown) =>
          log.warn("role_not_kept", { error: errorText(error) }),
        );
        const { host } = options.listen;
        log.info("serving", {
          host,
          grpc_port: node.grpcPort,
          metrics_port: node.metricsPort,
          metaservers: options.metaservers.length === 0 ? "none: stands alone" : options.metaservers.join(),
          tls: hasTls,
          loops: options.loops,
        });
        process.stdout.write(
          `grove fileserver ${options.id}: serves ${options.dataFolder} on ${formatHostPort({ host, port: node.grpcPort })}, ` +
            `metrics on http://${formatHostPort({ host, port: node.metricsPort })}/metrics${identity.mock ? ", MOCK sign-in" : ""}\n`,
        );
        const onHangup = (): void => {
          log.info("reload");
          void node.reloadCertificate();
        };
        process.on("SIGHUP", onHangup);
        return {
          ...(node.ended === undefined ? {} : { ended: node.ended }),
          async stop() {
            process.off("SIGHUP", onHangup);
            await node.stop();
          },
        };
      },
      { onEvent: (event, detail) => log.info(event, { detail }) },
    );
  } finally {
    await log.close();
  }
}

async function optionsOf(
  flags: Flags,
  identity: IdentitySettings,
  metricsToken: string | undefined,
): Promise<{ readonly options: FileServerOptions; readonly past: PastRole }> {
  const past = await readPastRole(flags.data);
  const { joined } = past;
  const given = tlsPathsOf(flags);
  if (given === undefined) requireKey(past, flags.data);
  const tlsPaths = given ?? (joined === undefined ? undefined : joinedTlsPaths(flags.data));
  const tls = tlsPaths === undefined ? undefined : { paths: tlsPaths };
  const listen = flags.listen ?? {
    host: tls === undefined || identity.mock ? "127.0.0.1" : "0.0.0.0",
    port: FILESERVER_PORT,
  };
  const id = checkedNodeId(flags.id ?? joined?.id ?? hostname().split(".", 1)[0]?.toLowerCase() ?? "node");
  const engine = await engineSettings(flags, process.env);
  const options: FileServerOptions = {
    dataFolder: flags.data,
    id,
    name: flags.name ?? id,
    listen,
    metricsPort: checkedMetricsPortOf(listen.port),
    advertise:
      flags.advertise ??
      joined?.advertise ??
      (isWildcard(listen.host) ? `${hostname()}:${listen.port}` : undefined),
    metaservers: flags.metaserver ?? joined?.metaservers ?? [],
    reserveBytes: flags.reserve ?? DISK_RESERVE_BYTES,
    engine,
    scrub: scrubSettings(flags),
    recount: { rowsPerSecond: RECOUNT_ROWS_PER_SECOND, pauseMs: RECOUNT_PAUSE_MS },
    trashRetentionMs: flags.trashRetention ?? TRASH_RETENTION_MS,
    tls,
    reflection: flags.reflection,
    loops: loopsFor(engine, flags.loops),
    passwordPath: flags.passwordPath,
    identity,
    idpCa: flags.idpCa === undefined ? undefined : await readPem(flags.idpCa),
    metricsToken: metricsToken === "" ? undefined : metricsToken,
    limits: limitsOf(flags),
  };
  return { options, past };
}

/** Refuses to expose to other machines what is safe only on this one, unless a flag asks for it (C-06). */
function requireSafe(
  listen: HostPort,
  safety: { readonly hasTls: boolean; readonly isMock: boolean; readonly isAllowed: boolean },
): void {
  if (safety.isAllowed || listen.host === "localhost" || isLoopbackAddress(listen.host)) return;
  if (safety.isMock) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "mock sign-in is on, and with it anybody can be anybody: listen on 127.0.0.1, or add -insecure to allow it all the same",
    );
  }
  if (!safety.hasTls) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "without TLS everybody on the way can read files and sessions: give -tls_cert, -tls_key and -tls_ca, listen on 127.0.0.1, " +
        "or add -insecure to allow it all the same",
    );
  }
}

function warnOfDeviations(options: FileServerOptions, log: Logger): void {
  if (options.identity.mock) log.warn("auth_mock", { warning: "mock sign-in is on: anybody can be anybody" });
  if (options.reserveBytes !== DISK_RESERVE_BYTES) {
    log.warn("reserve", {
      reserve_bytes: options.reserveBytes,
      warning: `the disk reserve is ${formatBytes(options.reserveBytes)}, not 20 GiB`,
    });
  }
  const moved = movedLimits(options.limits ?? {});
  if (moved !== undefined) log.warn("limits", moved);
}

function isWildcard(host: string): boolean {
  return host === "::" || host === "0.0.0.0";
}

function parseListen(text: string): HostPort {
  return checked(() => {
    const address = parseHostPort(text.startsWith(":") ? `0.0.0.0${text}` : text);
    checkedMetricsPortOf(address.port);
    return address;
  });
}

function parseAdvertise(text: string): string {
  return checked(() => checkedFileServerAddress(text));
}

function parseList(text: string): string[] {
  return checked(() => text.split(",").map((item) => formatHostPort(parseHostPort(item.trim()))));
}

/** Reports an invalid value as the command line's parser does. */
function checked<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new InvalidArgumentError(`${errorText(error)}.`);
  }
}

function parseReserve(text: string): bigint {
  const bytes = parseBytes(text);
  if (bytes === undefined) throw new InvalidArgumentError('write bytes, or "20GiB".');
  return bytes;
}

function parseRetention(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined || (ms !== 0 && ms < TRASH_MIN_AGE_MS)) {
    throw new InvalidArgumentError('write a span of at least a day, such as "30d", or 0.');
  }
  return ms;
}

function parseLevel(text: string): Flags["logLevel"] {
  if (text === "debug" || text === "info" || text === "warn" || text === "error") return text;
  throw new InvalidArgumentError("it is one of debug, info, warn, error.");
}
