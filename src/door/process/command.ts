// `grove door`: reads flags, opens a door for people without a terminal, and stops it on a signal.
import { Command, InvalidArgumentError, Option } from "commander";
import { systemClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { growHeapSlowly } from "#base/heap-settings.ts";
import { DOOR_METRICS_PORT, DOOR_PORT } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { isLoopbackAddress } from "#base/network.ts";
import { formatHostPort, type HostPort, parseHostPort } from "#base/node-id.ts";
import { systemFraction } from "#base/random.ts";
import { VERSION } from "#base/version.ts";
import { type Running, run } from "#os/exit-signals.ts";
import { createLogger, LOG_LEVELS, type LogLevel, switchLevelOnSignal } from "#os/logger.ts";
import { CertificateRenewer } from "#security/authority/certificate-renewer.ts";
import { tlsPathsOf } from "#security/authority/tls-material.ts";
import { FollowedPair } from "#security/renewal/followed-pair.ts";
import { renewByMetaServer } from "#security/renewal/renew-by-metaserver.ts";
import { joinPeople } from "./cluster-side.ts";
import { type RunningDoor, startDoor } from "./door.ts";
import { flowToProvider } from "./provider-flow.ts";

interface DoorFlags {
  readonly listen?: HostPort;
  readonly publicUrl?: string;
  readonly publicCert?: string;
  readonly publicKey?: string;
  readonly trustedProxy?: readonly string[];
  readonly metaserver: readonly string[];
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tlsCa?: string;
  readonly metrics: HostPort | "off";
  readonly idpCa?: string;
  readonly mock: boolean;
  readonly logFile?: string;
  readonly logLevel: LogLevel;
}

const EXAMPLES = `
Examples:
  Behind a proxy on the same machine that does the TLS; else add -listen, -public_cert and -public_key:
    grove door -public_url https://files.example.net -trusted_proxy 127.0.0.1 \\
      -metaserver meta.example.net:50050 -tls_cert door.crt -tls_key door.key -tls_ca ca.crt

People sign in at PUBLIC_URL with a browser where IDP_ISSUER and IDP_CLIENT_ID (a client of the doors' own, with
the address PUBLIC_URL/sign-in/callback; the metaserver's IDP_DOOR_CLIENT_ID) are set, and IDP_CLIENT_SECRET where
the provider insists on one.
People connect to PUBLIC_URL/dav/ by WebDAV, with their e-mail address and an app password ('grove app-password').
All certificates are read again when they change, and on SIGHUP. Requests under way have 10 s to finish at a stop.`;

/** The parser of `grove door`. */
export function command(): Command {
  return new Command("door")
    .summary("Open a door: WebDAV for people without a terminal")
    .description("Open a door: people reach their files by WebDAV, with app passwords.")
    .option(
      "--listen <host:port>",
      `address to listen on (default: :${DOOR_PORT}, without -public_cert 127.0.0.1:${DOOR_PORT})`,
      parseListen,
    )
    .option("--public-url <url>", "address that people are given (default: the one listened on)")
    .option("--public-cert <file>", "certificate for that address, PEM, with the chain")
    .option("--public-key <file>", "its private key, PEM")
    .option(
      "--trusted-proxy <address>",
      "address or network whose X-Forwarded-For and X-Forwarded-Proto count; may be repeated",
      collectPlaces,
    )
    .requiredOption("--metaserver <host:port,...>", "the coordinator of the cluster", parseList)
    .option("--tls-cert <file>", "certificate of this door in the cluster, PEM")
    .option("--tls-key <file>", "its private key, PEM")
    .option("--tls-ca <file>", "certificate of the cluster's authority, PEM")
    .addOption(
      new Option("--metrics <host:port>", 'plain HTTP listener for /health, /ready and /metrics, or "off"')
        .argParser((text) => (text === "off" ? "off" : parseListen(text)))
        .default({ host: "127.0.0.1", port: DOOR_METRICS_PORT }, `127.0.0.1:${DOOR_METRICS_PORT}`),
    )
    .option(
      "--idp-ca <file>",
      "authority of the identity provider's certificate, PEM (default: the public ones)",
    )
    .option("--mock", "a door of a cluster without certificates; for trials only", false)
    .option("--log-file <file>", "write the log there instead of standard error")
    .addOption(new Option("--log-level <level>", "how much to log").choices(LOG_LEVELS).default("info"))
    .addHelpText("after", EXAMPLES)
    .action(async (flags: DoorFlags) => {
      const log = createLogger({
        destination: flags.logFile === undefined ? "stderr" : { file: flags.logFile },
        level: flags.logLevel,
        fields: { role: "door" },
      });
      switchLevelOnSignal(log);
      growHeapSlowly();
      try {
        await run(() => start(flags, log), {
          onEvent: (event, detail) => log.info(event, detail === "" ? {} : { detail }),
        });
      } finally {
        await log.close();
      }
    });
}

async function start(flags: DoorFlags, log: Logger): Promise<Running> {
  const clock = systemClock;
  const ends = new AsyncDisposableStack();
  try {
    const certificate = await openPublicCertificate(flags, log);
    ends.defer(() => certificate?.close());
    const listen = listenAddress(flags, certificate !== undefined);
    const paths = clusterPaths(flags, listen);
    const renewer =
      paths === undefined
        ? undefined
        : await CertificateRenewer.open({
            paths,
            uses: ["client"],
            clock,
            log,
            random: systemFraction,
            renew: (current) => renewByMetaServer(flags.metaserver, current),
            onChange: () => people.useCertificate(),
          });
    ends.defer(() => renewer?.close());
    const people = joinPeople({
      metaservers: flags.metaserver,
      mock: flags.mock,
      clock,
      log,
      tls: () => renewer?.material,
    });
    ends.defer(() => people.close());
    const door = await startDoor({
      listen,
      publicUrl: flags.publicUrl,
      certificate,
      people,
      flowTo: await flowToProvider(process.env, flags.idpCa),
      mock: flags.mock,
      clock,
      log,
      trustedProxies: flags.trustedProxy ?? [],
      metrics: flags.metrics === "off" ? undefined : flags.metrics,
      clusterDaysLeft: () => renewer?.daysLeft ?? null,
    });
    ends.defer(() => door.stop());
    const endReload = reloadOnHangup(certificate, renewer, log);
    ends.defer(endReload);
    tellServing(door, listen, flags, log);
    return { stop: () => ends.disposeAsync() };
  } catch (error) {
    await ends.disposeAsync().catch((cause: unknown) => {
      log.error("not_all_ended", { error: errorText(cause) });
    });
    throw error;
  }
}

function tellServing(door: RunningDoor, listen: HostPort, flags: DoorFlags, log: Logger): void {
  log.info("serving", {
    version: VERSION,
    address: formatHostPort({ host: listen.host, port: door.port }),
    public_url: door.url,
    metaservers: flags.metaserver.join(),
    mock: flags.mock,
  });
  process.stdout.write(`grove door: files are on ${door.url}/dav/\n`);
}

function reloadOnHangup(
  certificate: FollowedPair | undefined,
  renewer: CertificateRenewer | undefined,
  log: Logger,
): () => void {
  const onHangup = (): void => {
    log.info("reload");
    void certificate?.reload();
    void renewer?.reload();
  };
  process.on("SIGHUP", onHangup);
  return () => process.off("SIGHUP", onHangup);
}

async function openPublicCertificate(flags: DoorFlags, log: Logger): Promise<FollowedPair | undefined> {
  const { publicCert: cert, publicKey: key } = flags;
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined || key === undefined) {
    throw new GroveError("BAD_ARGUMENT", "HTTPS needs both -public_cert and -public_key");
  }
  return await FollowedPair.open({ cert, key }, { clock: systemClock, log });
}

/** Plain HTTP is for this machine, and for proxies that are named: passwords go over it (C-06). */
function listenAddress(flags: DoorFlags, hasTls: boolean): HostPort {
  const listen = flags.listen ?? { host: hasTls ? "0.0.0.0" : "127.0.0.1", port: DOOR_PORT };
  const isLocal = listen.host === "localhost" || isLoopbackAddress(listen.host);
  if (!hasTls && !isLocal && flags.trustedProxy === undefined) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "without TLS everybody on the way can read passwords and files: give -public_cert and -public_key, " +
        "or listen on 127.0.0.1, or name the proxy that does the TLS with -trusted_proxy",
    );
  }
  if (flags.mock && !isLocal) {
    throw new GroveError("BAD_ARGUMENT", "-mock is for this machine alone: listen on 127.0.0.1");
  }
  return listen;
}

function clusterPaths(flags: DoorFlags, listen: HostPort): ReturnType<typeof tlsPathsOf> {
  const paths = tlsPathsOf(flags);
  if (paths !== undefined || flags.mock) return paths;
  throw new GroveError(
    "BAD_ARGUMENT",
    `a door on ${formatHostPort(listen)} needs a certificate of the cluster: -tls_cert, -tls_key and -tls_ca ('grove ca issue ID -door' makes them)`,
  );
}

function parseListen(text: string): HostPort {
  try {
    return parseHostPort(text.startsWith(":") ? `0.0.0.0${text}` : text, { allowZero: true });
  } catch (error) {
    throw new InvalidArgumentError(`${errorText(error)}.`);
  }
}

function collectPlaces(text: string, before: readonly string[] | undefined): string[] {
  return [...(before ?? []), ...text.split(",").map((place) => place.trim())];
}

function parseList(text: string): string[] {
  try {
    return text.split(",").map((item) => formatHostPort(parseHostPort(item.trim())));
  } catch (error) {
    throw new InvalidArgumentError(`${errorText(error)}.`);
  }
}
