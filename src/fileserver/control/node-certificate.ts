// Holds the node's running certificate: follows its files, renews it by the MetaServer, notifies its users.

import type { Clock } from "#base/clock.ts";
import { DAY_MS } from "#base/duration.ts";
import type { Logger } from "#base/log.ts";
import { systemFraction } from "#base/random.ts";
import { CertificateRenewer } from "#security/authority/certificate-renewer.ts";
import { certificateEndMs, type TlsMaterial, type TlsPaths } from "#security/authority/tls-material.ts";
import { renewByMetaServer } from "#security/renewal/renew-by-metaserver.ts";

/** Certificates as constant texts, or as files that are followed. */
export type TlsSource = TlsMaterial | { readonly paths: TlsPaths };

/** Dependencies of a node's certificate. */
export interface NodeCertificateDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Between 0 and 1. */
  readonly random: () => number;
  /** Asks the MetaServer for a new certificate (PEM); undefined for a node that stands alone. */
  readonly renew: ((current: TlsMaterial) => Promise<string>) | undefined;
}

/** A certificate in use. */
export class NodeCertificate {
  readonly #listeners: ((material: TlsMaterial) => void)[] = [];
  readonly #clock: Clock;
  readonly #fixed: TlsMaterial | undefined;
  #renewer: CertificateRenewer | undefined;

  private constructor(clock: Clock, fixed: TlsMaterial | undefined) {
    this.#clock = clock;
    this.#fixed = fixed;
  }

  /** Opens the files and follows them. Throws BAD_ARGUMENT when they cannot be used. */
  static async open(source: TlsSource, deps: NodeCertificateDeps): Promise<NodeCertificate> {
    if (!("paths" in source)) return new NodeCertificate(deps.clock, source);
    const certificate = new NodeCertificate(deps.clock, undefined);
    certificate.#renewer = await CertificateRenewer.open({
      ...deps,
      paths: source.paths,
      // A node that stands alone shows it to nobody else.
      uses: deps.renew === undefined ? ["server"] : ["server", "client"],
      onChange: (material) => {
        for (const listener of certificate.#listeners) listener(material);
      },
    });
    return certificate;
  }

  /** The material in use now. */
  get material(): TlsMaterial {
    const material = this.#renewer?.material ?? this.#fixed;
    if (material === undefined) throw new Error("a certificate is a file or a text");
    return material;
  }

  /** Whole days until it ends (D12). */
  get daysLeft(): number {
    if (this.#renewer !== undefined) return this.#renewer.daysLeft;
    return Math.floor((certificateEndMs(this.material.cert) - this.#clock.wallMs()) / DAY_MS);
  }

  /** Calls back with every new one. */
  onChange(listener: (material: TlsMaterial) => void): void {
    this.#listeners.push(listener);
  }

  /** Reads the files again now. */
  async reload(): Promise<void> {
    await this.#renewer?.reload();
  }

  /** Stops following. */
  async close(): Promise<void> {
    await this.#renewer?.close();
  }
}

/** Opens the certificate of a node; any of the MetaServers may renew it. */
export async function openNodeCertificate(
  source: TlsSource | undefined,
  node: { readonly id: string; readonly metaservers: readonly string[] },
  deps: { readonly clock: Clock; readonly log: Logger },
): Promise<NodeCertificate | undefined> {
  if (source === undefined) return undefined;
  const { clock, log } = deps;
  return NodeCertificate.open(source, {
    clock,
    log,
    random: systemFraction,
    renew:
      node.metaservers.length === 0
        ? undefined
        : (current) => renewByMetaServer(node.metaservers, current, node.id),
  });
}
