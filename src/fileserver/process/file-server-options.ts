// The settings of a FileServer, and the outside world that tests replace.
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import type { DiskSpace } from "#fileserver/control/meta-link.ts";
import type { TlsSource } from "#fileserver/control/node-certificate.ts";
import type { ServiceLimits } from "#fileserver/operations/service-limits.ts";
import type { IdentitySettings } from "#security/identity/sign-in-variables.ts";
import type { RecountSettings } from "#storage/contract/recount-types.ts";
import type { ScrubSettings } from "#storage/contract/scrub-types.ts";
import type { EngineSettings } from "#storage/engine/engine-settings.ts";

/** All settings from outside. */
export interface FileServerOptions {
  readonly dataFolder: string;
  readonly id: string;
  readonly name: string;
  /** gRPC address; port 0 takes a free one, for tests. */
  readonly listen: { readonly host: string; readonly port: number };
  /** Port of the metrics listener: the gRPC port minus 41000, or 0 for a free one, for tests. */
  readonly metricsPort: number;
  /** host:port that clients are sent to; undefined for the bound address. */
  readonly advertise: string | undefined;
  /** host:port of each MetaServer; none for a node that stands alone. */
  readonly metaservers: readonly string[];
  readonly reserveBytes: bigint;
  /** The shared engine; undefined for files in the data folder. */
  readonly engine?: EngineSettings | undefined;
  /** Rate of the scrub and pause between its passes; undefined for never. */
  readonly scrub?: ScrubSettings | undefined;
  /** The same for the recount of counters (D16). */
  readonly recount?: RecountSettings | undefined;
  readonly tls: TlsSource | undefined;
  readonly reflection: boolean;
  /** Event loops that serve connections; default 1. */
  readonly loops?: number;
  readonly passwordPath: boolean;
  readonly identity: IdentitySettings;
  /** PEM of the authority behind the identity provider's certificate; undefined for the public ones. */
  readonly idpCa?: string | undefined;
  /** SVC_METRICS_TOKEN (T8). */
  readonly metricsToken: string | undefined;
  /** How long the trash keeps items, in milliseconds; 0 means until space is needed (D14). */
  readonly trashRetentionMs?: number;
  readonly limits?: Partial<ServiceLimits>;
}

/** The outside world; tests set their own. */
export interface FileServerWorld {
  readonly log: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
  /** Free and total bytes at the data folder, now. */
  readonly diskSpace?: () => DiskSpace;
}
