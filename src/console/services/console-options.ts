// The options of a console.

import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import type { HostPort } from "#base/node-id.ts";
import type { Random } from "#base/random.ts";
import type { BucketRate } from "#base/token-buckets.ts";
import type { NotificationSettings } from "#console/alerts/notification-settings.ts";
import type { Lookup } from "#console/cluster/node-names.ts";
import type { OperatorPassword } from "#console/operators/operator-password.ts";
import type { OperatorPeople } from "#console/operators/operator-people.ts";
import type { LocalLog } from "#console/orchestration/local-logs.ts";
import type { DirectoryReader } from "#metaserver/directory/directory.ts";
import type { Fetch } from "#os/authority-fetch.ts";
import type { PausePlacement } from "./maintenance-service.ts";
import type { WithNodeStore } from "./move-runner.ts";

/** How nodes are reached for actions, and which actions are allowed. */
export interface SshOptions {
  /** Private key; default ~/.ssh/id_ed25519. */
  readonly keyFile?: string;
  /** User on all nodes, instead of the enrolled ones. */
  readonly user?: string;
  /** Finished actions in the history; default 100. */
  readonly historyLimit?: number;
  readonly presetsFile?: string;
  /** Default true. */
  readonly allowsCustom?: boolean;
  /** Log files of this machine that operators may read without SSH (spec 4.1); default none. */
  readonly localLogs?: readonly LocalLog[];
  /** Addresses of nodes while the metadata store does not answer (D20). */
  readonly snippet?: { readonly url: URL; readonly fetch: Fetch };
}

/** The options of a console; only the command's entry builds them, from flags and environment. */
export interface ConsoleOptions {
  readonly listen: HostPort;
  /** Certificate and key for HTTPS, PEM. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Whole days until that certificate ends. */
  readonly certificateDaysLeft?: () => number;
  /** Folder of its files, which exists and is private. */
  readonly dataFolder: string;
  /** The shared metadata store, which the console closes at its end. */
  readonly directory: DirectoryReader;
  /** Stops and resumes the placement of new roots on a node. */
  readonly pausePlacement: PausePlacement;
  /** Opens the store for plans and moves of roots. */
  readonly withNodeStore: WithNodeStore;
  /** Kind and place of that store, as operators see it; never its user or password. */
  readonly store?: { readonly kind: "sqlite" | "postgres"; readonly place: string };
  readonly password: OperatorPassword;
  /** Wrong passwords from one address in 15 minutes; default 5 (D17). */
  readonly loginFailures?: number;
  /** For tests: delay of the answer to a wrong password; default 1 s (D17). */
  readonly loginFailureDelayMs?: number;
  /** Addresses and networks of trusted proxies, for X-Forwarded-For; default none. */
  readonly trustedProxies?: readonly string[];
  /** Lets operators sign in over plain HTTP from other machines. */
  readonly insecureHttp?: boolean;
  /** Default true (T12). */
  readonly allowQueryToken?: boolean;
  /** The password in the metadata store's URL, masked in all output. */
  readonly storePassword?: string;
  /** Bearer token for the nodes' /metrics (T8). */
  readonly metricsToken?: string;
  /** Additional networks that nodes may lie in (M-04). */
  readonly allowNodes?: readonly string[];
  /** The watched MetaServers, by their gRPC addresses; default none. */
  readonly metaServers?: readonly HostPort[];
  /** Authority of the nodes' gRPC, PEM; undefined for nodes without TLS. */
  readonly nodeAuthority?: string;
  /** Receivers of alerts; default none (spec 6). */
  readonly notices?: NotificationSettings;
  /** Lets operators sign in by name at an identity provider; default: password only. */
  readonly people?: OperatorPeople;
  /** Rate limits, in requests a second; default per decision D17. */
  readonly rates?: { readonly visitor: BucketRate; readonly operator: BucketRate };
  /** How nodes are reached for actions (spec 4.7). */
  readonly ssh?: SshOptions;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** For tests: checks every answer against its schema. */
  readonly checkReplies?: boolean;
  /** For tests: resolves node names. */
  readonly lookup?: Lookup;
}
