// The console: builds its parts, joins them, listens, and stops them in the opposite order.

import type { Server as HttpsServer } from "node:https";
import type { NoticeSettings } from "#alerts/notice-settings.ts";
import { Notifier } from "#alerts/notifier.ts";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { API_OPERATOR_RATE, API_VISITOR_RATE } from "#base/limits.ts";
import type { Logger } from "#base/log.ts";
import { formatHostPort, type HostPort } from "#base/node-id.ts";
import type { Random } from "#base/random.ts";
import type { DirectoryReader } from "#directory/directory.ts";
import { makeApp } from "./app.ts";
import { TrustedProxies } from "./client-address.ts";
import { ConsoleMetrics } from "./console-metrics.ts";
import { LoginLimiter } from "./login-limiter.ts";
import { noticeRoutes } from "./notice-routes.ts";
import type { OperatorPassword } from "./operator-password.ts";
import { OperatorSessions } from "./operator-sessions.ts";
import type { App } from "./route.ts";
import { signInRoutes } from "./sign-in-routes.ts";
import { statusRoutes } from "./status-routes.ts";
import { Tickets } from "./tickets.ts";
import type { RequestRate } from "./token-bucket.ts";

/** What a console needs. */
export interface ConsoleOptions {
  readonly listen: HostPort;
  /** Certificate and key for HTTPS, PEM. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Folder of its own files, which exists and is private. */
  readonly dataFolder: string;
  /** The shared metadata store; the console only reads it, and closes it at its end. */
  readonly directory: DirectoryReader;
  readonly password: OperatorPassword;
  /** Wrong passwords from one address in 15 minutes; default 5 (D17). */
  readonly loginFailures?: number;
  /** For tests: how long the answer to a wrong password is held back; default 1 s (D17). */
  readonly loginFailureDelayMs?: number;
  readonly trustedProxies?: readonly string[];
  /** Lets operators sign in over plain HTTP from other machines. */
  readonly insecureHttp?: boolean;
  /** Default true (T12). */
  readonly allowQueryToken?: boolean;
  /** Bearer token for the nodes' /metrics (T8). */
  readonly metricsToken?: string;
  /** Authority of the nodes' gRPC, PEM; undefined for nodes without TLS. */
  readonly nodeAuthority?: string;
  /** Who is told of alerts; default nobody (spec 6). */
  readonly notices?: NoticeSettings;
  readonly rates?: { readonly visitor: RequestRate; readonly operator: RequestRate };
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** For tests: checks every answer against its schema. */
  readonly checkReplies?: boolean;
}

/** A console that is up. */
export interface RunningConsole {
  readonly address: HostPort;
  /** Where a browser finds it. */
  readonly url: string;
  /** Shows the certificate from the next handshake on, and reads the password again: another one than before ends every session. */
  reload(tls?: { readonly cert: string; readonly key: string }): Promise<void>;
  /** Stops gracefully: no new requests, running ones end, files are saved. */
  stop(): Promise<void>;
}

/** Starts everything. Rejects with BAD_ARGUMENT when the port cannot be had. */
export async function startConsole(options: ConsoleOptions): Promise<RunningConsole> {
  const { clock, random, log, password } = options;
  /** What ends with the console, in the order in which it was made. */
  const ends: (() => Promise<void> | void)[] = [() => options.directory.close()];
  try {
    const sessions = new OperatorSessions({ clock, random });
    ends.push(() => sessions.close());
    const tickets = new Tickets({ clock, random, sessions });
    const limiter = new LoginLimiter(clock, options.loginFailures);
    const metrics = new ConsoleMetrics(clock);
    ends.push(() => metrics.close());
    metrics.add({
      name: "sessions",
      type: "gauge",
      help: "Operators who are signed in.",
      read: () => sessions.count,
    });
    metrics.add({
      name: "sign_in_failures",
      type: "gauge",
      help: "Wrong passwords in the last hour, at most 100.",
      read: () => limiter.failures().lastHour,
    });
    /** Why requests for answers should go elsewhere: each part adds what it waits for. */
    const unready: (() => string | undefined)[] = [];
    const app = await makeApp({
      sessions,
      onAnswered: (status) => metrics.countRequest(status),
      proxies: new TrustedProxies(options.trustedProxies),
      clock,
      allowQueryToken: options.allowQueryToken ?? true,
      rates: options.rates ?? { visitor: API_VISITOR_RATE, operator: API_OPERATOR_RATE },
      onQueryToken: () => log.warn("query_token", { text: "a token in a URL ends up in logs and histories" }),
      log,
      tls: options.tls,
      ...(options.checkReplies === undefined ? {} : { checkReplies: options.checkReplies }),
    });
    ends.push(() => app.close());

    signInRoutes(app, {
      sessions,
      tickets,
      limiter,
      password,
      insecureHttp: options.insecureHttp ?? false,
      ...(options.loginFailureDelayMs === undefined ? {} : { failureDelayMs: options.loginFailureDelayMs }),
      log,
      audit: () => {},
    });
    statusRoutes(app, { metrics, metricsToken: options.metricsToken, unready });

    const notifier = await Notifier.open({
      dataFolder: options.dataFolder,
      clock,
      log,
      random,
      settings: options.notices,
    });
    ends.push(() => notifier.close());
    noticeRoutes(app, { notifier, onAct: () => {} });

    // Parts, each with its routes: `const part = open…({ clock, log, … }); partRoutes(app, { part });` and its end pushed above.

    const address = await listen(app, options.listen);
    return {
      address,
      url: `${options.tls === undefined ? "http" : "https"}://${formatHostPort(address)}`,
      reload: async (tls) => {
        if (tls !== undefined) (app.server as unknown as HttpsServer).setSecureContext(tls);
        if (!(await password.reload())) return;
        log.info("password_changed", { sessions_ended: sessions.endAll() });
      },
      stop: () => endAll(ends),
    };
  } catch (error) {
    await endAll(ends);
    throw error;
  }
}

async function listen(app: App, place: HostPort): Promise<HostPort> {
  try {
    await app.listen({ host: place.host, port: place.port });
  } catch (cause) {
    throw new GroveError("BAD_ARGUMENT", `cannot listen on ${formatHostPort(place)}`, { cause });
  }
  const bound = app.server.address();
  return { host: place.host, port: typeof bound === "object" && bound !== null ? bound.port : place.port };
}

/** Ends everything in the opposite order, the rest also when one of them fails; then the first failure is thrown. */
async function endAll(ends: (() => Promise<void> | void)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const end of ends.splice(0).toReversed()) {
    try {
      await end();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
