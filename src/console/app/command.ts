// `grove admin`: reads flags and environment, starts the console, and stops it on a signal.
import { resolve } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import { systemClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { growHeapSlowly } from "#base/heap-settings.ts";
import { COMMAND_HISTORY_RECORDS, CONSOLE_PORT } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { METRICS_PORT_OFFSET } from "#base/metrics-port.ts";
import { formatHostPort, type HostPort, parseHostPort } from "#base/node-id.ts";
import { systemFraction, systemRandom } from "#base/random.ts";
import { VERSION } from "#base/version.ts";
import { readNotificationSettings } from "#console/alerts/notification-settings.ts";
import { hashPasswordCommand } from "#console/operators/hash-password.ts";
import { LOGIN_FAILURES_PER_WINDOW } from "#console/operators/login-limiter.ts";
import { OperatorPassword } from "#console/operators/operator-password.ts";
import { operatorPeople, type PeopleFlags, withPeopleFlags } from "#console/operators/people-flags.ts";
import { type LocalLog, parseLocalLog } from "#console/orchestration/local-logs.ts";
import { snippetUrl } from "#console/orchestration/node-source.ts";
import type { ConsoleOptions, SshOptions } from "#console/services/console-options.ts";
import {
  openDirectoryReader,
  pausePlacement,
  storePassword,
  storePlace,
  withNodeStore,
} from "#metaserver/directory/open-directory.ts";
import { storeUrl } from "#metaserver/directory/store-url.ts";
import { createAuthorityFetch } from "#os/authority-fetch.ts";
import { type Running, run } from "#os/exit-signals.ts";
import { createLogger, LOG_LEVELS, type LogLevel, switchLevelOnSignal } from "#os/logger.ts";
import { makePrivateFolder } from "#os/private-folder.ts";
import { readPem } from "#security/authority/tls-material.ts";
import { API_OPERATOR_RATE, API_VISITOR_RATE, startConsole } from "./console.ts";
import { followFiles } from "./follow-files.ts";
import { type OwnCertificate, openOwnCertificate, tlsOptions } from "./own-certificate.ts";
import { passwordCommand } from "./password-command.ts";

/** Upper limit of -history_limit. */
const COMMAND_HISTORY_MAX_RECORDS = 10_000;

interface AdminFlags extends PeopleFlags {
  readonly data: string;
  readonly listen: HostPort;
  readonly meta?: string;
  readonly metaFile?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tlsCa?: string;
  readonly passwordFile?: string;
  readonly allowNodes?: readonly string[];
  readonly metaserver?: readonly HostPort[];
  readonly trustedProxy?: readonly string[];
  readonly insecureHttp: boolean;
  readonly allowQueryToken: boolean;
  readonly rateVisitor: number;
  readonly rateOperator: number;
  readonly loginFailures: number;
  readonly notices?: string;
  readonly sshKey?: string;
  readonly sshUser?: string;
  readonly historyLimit: number;
  readonly presets?: string;
  readonly custom: boolean;
  readonly snippet?: URL;
  readonly snippetCa?: string;
  readonly localLog?: readonly LocalLog[];
  readonly logFile?: string;
  readonly logLevel: LogLevel;
}

const EXAMPLES = `
Examples:
  On the MetaServer's host, for this machine and whoever looks without signing in:
    grove admin -data /var/lib/grove/admin -meta sqlite:/var/lib/grove/metaserver/metadata.db

  With HTTPS, and the password's hash in a file that the user of the service alone can read:
    (umask 077; grove admin hash-password -argon2 > /var/lib/grove/admin/password)
    grove admin -data /var/lib/grove/admin -meta_file /var/lib/grove/metaserver/store -tls_ca /var/lib/grove/ca/ca.crt \\
      -tls_cert admin.crt -tls_key admin.key -password_file /var/lib/grove/admin/password

  Behind a proxy on the same machine that does the TLS:
    grove admin -listen 127.0.0.1:8080 -trusted_proxy 127.0.0.1 -meta sqlite:/var/lib/grove/metaserver/metadata.db

Everybody who reaches the port sees a page without users in it. Operators sign in with the password whose hash is in
ADMIN_PASSWORD_HASH: from this machine, over HTTPS, or with -insecure_http. Without a hash it is "admin", on this machine only.

Environment: ADMIN_PASSWORD_HASH ('grove admin hash-password' makes it), or ADMIN_PASSWORD; SVC_METRICS_TOKEN (the nodes' own).
With -operators or -operator_claim: IDP_ISSUER, IDP_CLIENT_ID, IDP_CLIENT_SECRET where the provider insists on one, and
IDP_REDIRECT_URI, which is the console's address and /api/auth/idp/callback; IDP_HOSTED_DOMAIN and IDP_ALLOW_AUD_LIST.
SIGHUP reads -password_file, -tls_cert and -tls_key again; another password signs everybody out. New files of the latter two are
taken within seconds without it, and a certificate of the cluster (-tls_ca) is renewed by the MetaServers of -metaserver.
SIGUSR2 switches the log between debug and the level it was started with.`;

/** The parser of `grove admin`. */
export function command(): Command {
  const server = new Command("admin")
    .summary("Run the console: the state of the cluster in a browser")
    .description(
      "Run the console: the state of the cluster, its history, alerts, users and quotas, in a browser and as an API.",
    )
    .option("--data <folder>", "where its own files are kept; made when missing", "grove-admin")
    .addOption(
      new Option("--listen <host:port>", "address to listen on")
        .argParser(parseListen)
        .default({ host: "0.0.0.0", port: CONSOLE_PORT }, `:${CONSOLE_PORT}`),
    )
    .option("--meta <url>", "metadata store of the MetaServer: sqlite:PATH, or postgres://USER@HOST/DATABASE")
    .option("--meta-file <file>", "file with that URL in its first line, for one that holds a password")
    .option(
      "--metaserver <host:port,...>",
      `the MetaServers that are to be watched: their /health, at that port minus ${METRICS_PORT_OFFSET} (default: none is)`,
      parseMetaServers,
    )
    .option("--tls-cert <file>", "certificate for HTTPS, PEM")
    .option("--tls-key <file>", "its private key, PEM")
    .option(
      "--tls-ca <file>",
      "authority of the cluster, for calls to FileServers, PEM (default: they have no TLS)",
    )
    .option(
      "--password-file <file>",
      "file with the password's hash in its first line, instead of ADMIN_PASSWORD_HASH",
    )
    .option(
      "--trusted-proxy <address>",
      "address or network whose X-Forwarded-For and X-Forwarded-Proto count; may be repeated",
      collectPlaces,
    )
    .option(
      "--allow-nodes <networks>",
      "networks that nodes may lie in, such as 10.0.0.0/8; 127.0.0.0/8 for nodes on this machine (default: all but this machine)",
      collectPlaces,
    )
    .option("--insecure-http", "let operators sign in over plain HTTP from other machines", false)
    .addOption(
      new Option(
        "--allow-query-token <yes>",
        "accept a session token as ?token= in URLs, as the interface specifies",
      )
        .argParser(parseYes)
        .default(true, "true"),
    )
    .option("--rate-visitor <n>", "requests a second from one address", parseRate, API_VISITOR_RATE.perSecond)
    .option("--rate-operator <n>", "requests a second in one session", parseRate, API_OPERATOR_RATE.perSecond)
    .option(
      "--login-failures <n>",
      "wrong passwords from one address in 15 minutes, then no more are looked at",
      parseRate,
      LOGIN_FAILURES_PER_WINDOW,
    )
    .option("--notices <file>", "who is told of alerts, by webhook or mail (default: nobody)");
  return withActionFlags(withPeopleFlags(server))
    .option("--log-file <file>", "write the log there instead of standard error")
    .addOption(new Option("--log-level <level>", "how much to log").choices(LOG_LEVELS).default("info"))
    .addHelpText("after", EXAMPLES)
    .addCommand(hashPasswordCommand())
    .addCommand(passwordCommand())
    .action((flags: AdminFlags) => serve(flags));
}

/** Flags of SSH actions, and of logs that are read on this machine. */
function withActionFlags(server: Command): Command {
  return server
    .option("--ssh-key <file>", "private key for actions, mode 0600 (default: ~/.ssh/id_ed25519)")
    .option("--ssh-user <name>", "user on all nodes (default: the one that each was enrolled with)")
    .addOption(
      new Option("--history-limit <n>", "finished actions that are kept")
        .argParser(parseHistoryLimit)
        .default(COMMAND_HISTORY_RECORDS),
    )
    .option("--presets <file>", "actions that are ready to be run, beside the eight built in, JSON")
    .option("--snippet <url>", "HTTPS address that says where nodes are while the store is away", snippetUrl)
    .option("--snippet-ca <file>", "authority of that address, PEM (default: the public ones)")
    .option("--no-custom", "refuse custom commands")
    .option(
      "--local-log <node/service=file>",
      "log file on this machine that operators may read without SSH, such as n1/fileserver=/var/log/grove/n1.log; may be repeated",
      collectLogs,
    );
}

async function serve(flags: AdminFlags): Promise<void> {
  const log = createLogger({
    destination: flags.logFile === undefined ? "stderr" : { file: flags.logFile },
    level: flags.logLevel,
    fields: { role: "admin" },
  });
  switchLevelOnSignal(log);
  growHeapSlowly();
  try {
    await run(() => start(flags, process.env, log), {
      onEvent: (event, detail) => log.info(event, detail === "" ? {} : { detail }),
    });
  } finally {
    await log.close();
  }
}

async function start(
  flags: AdminFlags,
  env: Readonly<Record<string, string | undefined>>,
  log: Logger,
): Promise<Running> {
  const password = await OperatorPassword.open({
    env: { ADMIN_PASSWORD_HASH: env["ADMIN_PASSWORD_HASH"], ADMIN_PASSWORD: env["ADMIN_PASSWORD"] },
    file: flags.passwordFile,
  });
  const url = await storeUrl(flags);
  if (url === undefined) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "give -meta (or -meta_file): the same metadata store that the MetaServer has",
    );
  }
  const dataFolder = resolve(flags.data);
  const nodeAuthority = flags.tlsCa === undefined ? undefined : await readPem(flags.tlsCa);
  const notices =
    flags.notices === undefined ? undefined : await readNotificationSettings(flags.notices, env);
  makePrivateFolder(dataFolder);
  const metricsToken = env["SVC_METRICS_TOKEN"] || undefined;
  const people = await operatorPeople(flags, env);
  const ssh = await sshOptions(flags);
  // What stays open comes last: a start that fails with it open would never end.
  const certificate = await ownCertificate(flags, log);
  const failed = async (error: unknown): Promise<never> => {
    await certificate?.close();
    throw error;
  };
  const storeDeps = { clock: systemClock, urlFile: flags.metaFile };
  const directory = await openDirectoryReader(url, storeDeps).catch(failed);
  const console = await startConsole({
    listen: flags.listen,
    ...tlsOptions(certificate),
    dataFolder,
    directory,
    ...storeOptions(url, storeDeps, env),
    password,
    loginFailures: flags.loginFailures,
    allowNodes: flags.allowNodes ?? [],
    metaServers: flags.metaserver ?? [],
    trustedProxies: flags.trustedProxy ?? [],
    insecureHttp: flags.insecureHttp,
    allowQueryToken: flags.allowQueryToken,
    ...(metricsToken === undefined ? {} : { metricsToken }),
    ...(nodeAuthority === undefined ? {} : { nodeAuthority }),
    ...(notices === undefined ? {} : { notices }),
    ...people,
    ssh,
    rates: ratesOf(flags),
    clock: systemClock,
    random: systemRandom,
    log,
  }).catch(failed);
  warnOfGaps(flags, password, log);
  log.info("serving", { version: VERSION, url: console.url });
  process.stdout.write(`grove admin: the console is on ${console.url}\n`);
  // A store that failed for good needs a restart, which is up to the service manager.
  const ended = directory.failed.then((error) => Promise.reject(error));
  return { ended, stop: followFiles(console, certificate, log) };
}

function storeOptions(
  url: string,
  deps: Parameters<typeof openDirectoryReader>[1],
  env: Readonly<Record<string, string | undefined>>,
): Pick<ConsoleOptions, "store" | "storePassword" | "pausePlacement" | "withNodeStore"> {
  const secret = storePassword(url, env);
  return {
    store: storePlace(url, env),
    ...(secret === undefined ? {} : { storePassword: secret }),
    pausePlacement: (fsId, untilWallMs) => pausePlacement(url, { ...deps, fsId, untilWallMs }),
    withNodeStore: (work) => withNodeStore(url, deps, work),
  };
}

function ratesOf({ rateVisitor, rateOperator }: AdminFlags): NonNullable<ConsoleOptions["rates"]> {
  return {
    visitor: { perSecond: rateVisitor, burst: 2 * rateVisitor },
    operator: { perSecond: rateOperator, burst: 2 * rateOperator },
  };
}

async function sshOptions(flags: AdminFlags): Promise<SshOptions> {
  const { sshKey, sshUser, historyLimit, presets, custom, snippet: url, snippetCa } = flags;
  const snippetFetch = snippetCa === undefined ? fetch : createAuthorityFetch(await readPem(snippetCa));
  return {
    ...(sshKey === undefined ? {} : { keyFile: resolve(sshKey) }),
    ...(sshUser === undefined ? {} : { user: sshUser }),
    historyLimit,
    ...(presets === undefined ? {} : { presetsFile: presets }),
    allowsCustom: custom,
    localLogs: flags.localLog ?? [],
    ...(url === undefined ? {} : { snippet: { url, fetch: snippetFetch } }),
  };
}

async function ownCertificate(flags: AdminFlags, log: Logger): Promise<OwnCertificate | undefined> {
  const { tlsCert: cert, tlsKey: key, tlsCa: ca } = flags;
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined || key === undefined) {
    throw new GroveError("BAD_ARGUMENT", "HTTPS needs both -tls_cert and -tls_key");
  }
  const metaservers = (flags.metaserver ?? []).map(formatHostPort);
  const deps = { clock: systemClock, log, random: systemFraction };
  return await openOwnCertificate({ cert, key, ca, metaservers }, deps);
}

function warnOfGaps(flags: AdminFlags, password: OperatorPassword, log: Logger): void {
  if (password.isDefault) {
    log.warn("default_password", {
      text: "no password is set: operators sign in with the built-in one, on this machine only; see grove admin hash-password",
    });
  }
  if (flags.metaserver === undefined) {
    log.warn("metaservers_unwatched", {
      text: "no MetaServer is watched: name them with -metaserver, and one that is away is an alert",
    });
  }
  if (flags.insecureHttp) {
    log.warn("insecure_http", {
      text: "operators may send their password over plain HTTP, where everybody on the way can read it",
    });
  }
  const moved =
    flags.rateVisitor !== API_VISITOR_RATE.perSecond ||
    flags.rateOperator !== API_OPERATOR_RATE.perSecond ||
    flags.loginFailures !== LOGIN_FAILURES_PER_WINDOW;
  if (moved) {
    log.warn("limits", {
      rate_visitor: flags.rateVisitor,
      rate_operator: flags.rateOperator,
      login_failures: flags.loginFailures,
      warning: "limits are not the usual ones",
    });
  }
}

function parseListen(text: string): HostPort {
  try {
    return parseHostPort(text.startsWith(":") ? `0.0.0.0${text}` : text, { allowZero: true });
  } catch (error) {
    throw new InvalidArgumentError(`${errorText(error)}.`);
  }
}

function collectPlaces(text: string, before: readonly string[] = []): string[] {
  return [...before, ...text.split(",").map((place) => place.trim())];
}

function parseMetaServers(text: string): HostPort[] {
  const addresses = text.split(",").map((item) => parseListen(item.trim()));
  if (addresses.some(({ port }) => port <= METRICS_PORT_OFFSET)) {
    throw new InvalidArgumentError(`the port must be above ${METRICS_PORT_OFFSET}.`);
  }
  return addresses;
}

function collectLogs(text: string, before: readonly LocalLog[] = []): LocalLog[] {
  try {
    return [...before, parseLocalLog(text)];
  } catch (error) {
    throw new InvalidArgumentError(`${errorText(error)}.`);
  }
}

function parseRate(text: string): number {
  const count = Number(text);
  if (Number.isSafeInteger(count) && count >= 1) return count;
  throw new InvalidArgumentError("write a whole number from 1 on.");
}

function parseHistoryLimit(text: string): number {
  const count = Number(text);
  if (Number.isSafeInteger(count) && count >= 1 && count <= COMMAND_HISTORY_MAX_RECORDS) return count;
  throw new InvalidArgumentError(`write a whole number from 1 to ${COMMAND_HISTORY_MAX_RECORDS}.`);
}

function parseYes(text: string): boolean {
  if (text === "true" || text === "1") return true;
  if (text === "false" || text === "0") return false;
  throw new InvalidArgumentError("write true or false.");
}
