// A door: joins people, port and metrics.
import type { Clock } from "#base/clock.ts";
import { STOP_GRACE_MS } from "#base/limits.ts";
import type { Logger } from "#base/log.ts";
import type { HostPort } from "#base/node-id.ts";
import { Connections } from "#door/http/connections.ts";
import { Front } from "#door/http/front.ts";
import { startListener } from "#door/http/listener.ts";
import { OwnHosts } from "#door/http/own-hosts.ts";
import { openPages } from "#door/pages/pages.ts";
import { KnownSessions } from "#door/session/known-sessions.ts";
import { BrowserSignIn, CALLBACK_PATH } from "#door/session/sign-in.ts";
import { TrustedProxies } from "#os/client-address.ts";
import type { CodeFlow } from "#security/identity/code-flow-types.ts";
import type { FollowedPair } from "#security/renewal/followed-pair.ts";
import type { ClusterSide } from "./cluster-side.ts";
import { startDoorMetrics } from "./door-metrics.ts";

/** How a door runs. */
export interface DoorOptions {
  readonly listen: HostPort;
  /** Address that people are given; undefined for the one listened on. */
  readonly publicUrl: string | undefined;
  readonly trustedProxies: readonly string[];
  /** Undefined for plain HTTP. */
  readonly certificate: FollowedPair | undefined;
  /** Undefined for no metrics. */
  readonly metrics: HostPort | undefined;
  readonly people: ClusterSide;
  /** To the identity provider, for browsers, by the address to which it sends them back; undefined without one. */
  readonly flowTo: ((redirectUri: string) => CodeFlow) | undefined;
  readonly mock: boolean;
  readonly clusterDaysLeft: () => number | null;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A door that serves. */
export interface RunningDoor {
  /** As people reach it. */
  readonly url: string;
  readonly port: number;
  /** Finishes the requests under way. */
  stop(): Promise<void>;
}

/** Starts a door. Rejects with BAD_ARGUMENT where a port is taken or an address is none. */
export async function startDoor(options: DoorOptions): Promise<RunningDoor> {
  const { listen, certificate, people, clock, log } = options;
  const proxies = new TrustedProxies(options.trustedProxies);
  const hosts = new OwnHosts(options.publicUrl, listen, certificate !== undefined);
  const connections = new Connections(proxies);
  const { publicUrl } = hosts;
  const flow = options.flowTo?.(publicUrl + CALLBACK_PATH);
  const sessions = new KnownSessions(clock);
  const signIn = new BrowserSignIn({ flow, mock: options.mock, hosts, keeper: people, sessions, clock, log });
  const pages = await openPages({ signIn, people, sessions, publicUrl, log });
  const front = new Front({ people, visitors: people, pages, hosts, proxies, connections, clock, log });
  const ends = new AsyncDisposableStack();
  try {
    let isReady = true;
    if (options.metrics !== undefined) {
      const daysLeft = (): { public: number | null; cluster: number | null } => ({
        public: certificate?.daysLeft(clock.wallMs()) ?? null,
        cluster: options.clusterDaysLeft(),
      });
      const deps = { front, connections, daysLeft, isReady: () => isReady, clock, log };
      const metrics = await startDoorMetrics(deps, options.metrics);
      ends.defer(() => metrics.close());
    }
    const listener = await startListener({ front, connections, tls: certificate?.current, clock }, listen);
    certificate?.onChange((next) => listener.updateCertificate(next));
    ends.defer(() => {
      isReady = false;
      return listener.stop(STOP_GRACE_MS / 2);
    });
    return { url: hosts.publicUrl, port: listener.port, stop: () => ends.disposeAsync() };
  } catch (error) {
    await ends.disposeAsync();
    throw error;
  }
}
