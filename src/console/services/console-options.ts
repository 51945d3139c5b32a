// What a console is started with.

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

/** How nodes are reached for actions, and what is allowed there; what is left out is as usual. */
export interface SshOptions {
  /** Private key; default ~/.ssh/id_ed25519. */
  readonly keyFile?: string;
  /** User on all nodes, instead of those that they were enrolled with. */
  readonly user?: string;
  /** Finished actions that are kept; default 100. */
  readonly historyLimit?: number;
  readonly presetsFile?: string;
  /** Default true. */
  readonly allowsCustom?: boolean;
  /** Log files of this machine that operators may read without SSH (spec 4.1); default none. */
  readonly localLogs?: readonly LocalLog[];
  /** Where nodes are while the metadata store does not answer (D20). */
  readonly snippet?: { readonly url: URL; readonly fetch: Fetch };
}

/** What a console is started with; only the entry of the command builds it from flags and environment. */
export interface ConsoleOptions {
  readonly listen: HostPort;
  /** Certificate and key for HTTPS, PEM. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Folder of its own files, which exists and is private. */
  readonly dataFolder: string;
  /** The shared metadata store, which the console closes at its end. */
  readonly directory: DirectoryReader;
  /** Has that store place no new roots on a node; the console only reads it otherwise. */
  readonly pausePlacement: PausePlacement;
  /** What that store is, to be shown to operators; never its user or password. */
  readonly store?: { readonly kind: "sqlite" | "postgres"; readonly place: string };
  readonly password: OperatorPassword;
  /** Wrong passwords from one address in 15 minutes; default 5 (D17). */
  readonly loginFailures?: number;
  /** For tests: how long the answer to a wrong password is held back; default 1 s (D17). */
  readonly loginFailureDelayMs?: number;
  /** Addresses and networks of proxies whose X-Forwarded-For counts; default none. */
  readonly trustedProxies?: readonly string[];
  /** Lets operators sign in over plain HTTP from other machines. */
  readonly insecureHttp?: boolean;
  /** Default true (T12). */
  readonly allowQueryToken?: boolean;
  /** The password in the metadata store's URL, which no output may show. */
  readonly storePassword?: string;
  /** Bearer token for the nodes' /metrics (T8). */
  readonly metricsToken?: string;
  /** Networks that nodes may lie in beyond the usual ones (M-04). */
  readonly allowNodes?: readonly string[];
  /** The MetaServers that are watched, by their gRPC addresses; default none. */
  readonly metaServers?: readonly HostPort[];
  /** Authority of the nodes' gRPC, PEM; undefined for nodes without TLS. */
  readonly nodeAuthority?: string;
  /** Who is told of alerts; default nobody (spec 6). */
  readonly notices?: NotificationSettings;
  /** Lets operators sign in by name at an identity provider; default: with the password alone. */
  readonly people?: OperatorPeople;
  /** Requests a second; default as decision D17 has them. */
  readonly rates?: { readonly visitor: BucketRate; readonly operator: BucketRate };
  /** How nodes are reached for actions (spec 4.7). */
  readonly ssh?: SshOptions;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** For tests: checks every answer against its schema. */
  readonly checkReplies?: boolean;
  /** For tests: how names of nodes become addresses. */
  readonly lookup?: Lookup;
}
