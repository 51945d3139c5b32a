// The console's certificate for browsers: followed on disk, and renewed by the MetaServer that has signed it.
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import type { ConsoleOptions } from "#console/services/console-options.ts";
import { CertificateRenewer } from "#security/authority/certificate-renewer.ts";
import { readTlsMaterial, type TlsPaths } from "#security/authority/tls-material.ts";
import { type CertificatePair, FollowedPair } from "#security/renewal/followed-pair.ts";
import { renewByMetaServer } from "#security/renewal/renew-by-metaserver.ts";

/** The flags of the certificate. */
export interface OwnCertificateFlags {
  readonly cert: string;
  readonly key: string;
  /** The cluster's authority; undefined where nodes have no TLS. */
  readonly ca: string | undefined;
  /** host:port of the MetaServers. */
  readonly metaservers: readonly string[];
}

/** A certificate in use. */
export interface OwnCertificate {
  readonly current: CertificatePair;
  /** Whole days until it ends; negative after that. */
  daysLeft(): number;
  /** Calls back at every later change. */
  onChange(listener: (pair: CertificatePair) => void): void;
  /** Looks at the files now. */
  reload(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens the files and follows them. A certificate of the cluster's authority is renewed by the MetaServers;
 * one of anybody else, or one that has ended, is replaced by its owner. Throws BAD_ARGUMENT when the files are
 * unusable.
 */
export async function openOwnCertificate(
  flags: OwnCertificateFlags,
  deps: { readonly clock: Clock; readonly log: Logger; readonly random: () => number },
): Promise<OwnCertificate> {
  const { cert, key, ca } = flags;
  if (ca !== undefined && (await isOfCluster({ cert, key, ca }, deps.clock)))
    return await renewed({ cert, key, ca }, flags.metaservers, deps);
  const pair = await FollowedPair.open({ cert, key }, deps);
  return {
    get current() {
      return pair.current;
    },
    daysLeft: () => pair.daysLeft(deps.clock.wallMs()),
    onChange: (listener) => pair.onChange(listener),
    reload: () => pair.reload(),
    close: async () => pair.close(),
  };
}

/** The options of a console with this certificate; none for plain HTTP. */
export function tlsOptions(
  certificate: OwnCertificate | undefined,
): Pick<ConsoleOptions, "tls" | "certificateDaysLeft"> {
  if (certificate === undefined) return {};
  return { tls: certificate.current, certificateDaysLeft: () => certificate.daysLeft() };
}

async function isOfCluster(paths: TlsPaths, clock: Clock): Promise<boolean> {
  return await readTlsMaterial(paths, clock, ["server"]).then(
    () => true,
    () => false,
  );
}

async function renewed(
  paths: TlsPaths,
  metaservers: readonly string[],
  deps: { readonly clock: Clock; readonly log: Logger; readonly random: () => number },
): Promise<OwnCertificate> {
  let tell: (pair: CertificatePair) => void = () => {};
  const renewer = await CertificateRenewer.open({
    ...deps,
    paths,
    uses: ["server"],
    renew: metaservers.length === 0 ? undefined : (current) => renewByMetaServer(metaservers, current),
    onChange: (material) => tell(material),
  });
  return {
    get current() {
      return renewer.material;
    },
    daysLeft: () => renewer.daysLeft,
    onChange(listener) {
      tell = listener;
    },
    reload: () => renewer.reload(),
    close: () => renewer.close(),
  };
}
