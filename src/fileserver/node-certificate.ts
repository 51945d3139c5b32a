// The node's certificate while it runs: followed on the disk, renewed through the MetaServer, handed to whoever uses it.
import { CertificateKeeper } from "#authority/certificate-keeper.ts";
import { certificateEndMs, type TlsMaterial, type TlsPaths } from "#authority/tls-material.ts";
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";

/** Certificates as texts that never change, or as files that are followed. */
export type TlsSource = TlsMaterial | { readonly paths: TlsPaths };

/** What a node's certificate is made from. */
export interface NodeCertificateDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Between 0 and 1. */
  readonly random: () => number;
  /** Asks the MetaServer for a new certificate (PEM); undefined for a node that stands alone, which nobody renews. */
  readonly renew: (() => Promise<string>) | undefined;
}

const DAY_MS = 86_400_000;

/** A certificate in use. */
export class NodeCertificate {
  readonly #listeners: ((material: TlsMaterial) => void)[] = [];
  readonly #clock: Clock;
  readonly #fixed: TlsMaterial | undefined;
  #keeper: CertificateKeeper | undefined;

  private constructor(clock: Clock, fixed: TlsMaterial | undefined) {
    this.#clock = clock;
    this.#fixed = fixed;
  }

  /** Opens the files and follows them. Throws BAD_ARGUMENT when they cannot be used. */
  static async open(source: TlsSource, deps: NodeCertificateDeps): Promise<NodeCertificate> {
    if (!("paths" in source)) return new NodeCertificate(deps.clock, source);
    const certificate = new NodeCertificate(deps.clock, undefined);
    certificate.#keeper = await CertificateKeeper.open({
      ...deps,
      paths: source.paths,
      onChange: (material) => {
        for (const listener of certificate.#listeners) listener(material);
      },
    });
    return certificate;
  }

  /** What is in use now. */
  get material(): TlsMaterial {
    const material = this.#keeper?.material ?? this.#fixed;
    if (material === undefined) throw new Error("a certificate is a file or a text");
    return material;
  }

  /** Whole days until it ends (D12). */
  get daysLeft(): number {
    if (this.#keeper !== undefined) return this.#keeper.daysLeft;
    return Math.floor((certificateEndMs(this.material.cert) - this.#clock.wallMs()) / DAY_MS);
  }

  /** Tells of every new one. */
  onChange(listener: (material: TlsMaterial) => void): void {
    this.#listeners.push(listener);
  }

  /** Reads the files again now. */
  async reload(): Promise<void> {
    await this.#keeper?.reload();
  }

  /** Stops following. */
  async close(): Promise<void> {
    await this.#keeper?.close();
  }
}

/** Opens the certificate of a node; renewal goes over the link to the MetaServer that `link` finds once it is there, if there ever is one. */
export async function openNodeCertificate(
  source: TlsSource | undefined,
  deps: { readonly clock: Clock; readonly log: Logger },
  link: (() => { renewCertificate(): Promise<string> } | undefined) | undefined,
): Promise<NodeCertificate | undefined> {
  if (source === undefined) return undefined;
  const renew = async (): Promise<string> => {
    const open = link?.();
    if (open === undefined) throw new Error("the link to the metaserver is not there yet");
    return open.renewCertificate();
  };
  const { clock, log } = deps;
  return NodeCertificate.open(source, {
    clock,
    log,
    random: Math.random,
    renew: link === undefined ? undefined : renew,
  });
}
