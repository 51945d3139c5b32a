// The MetaServer's own certificate and the authority behind it: from files, or from the authority's folder.
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { hostname, networkInterfaces } from "node:os";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { DAY_MS } from "#base/duration.ts";
import { GroveError } from "#base/errors.ts";
import type { Logger } from "#base/log.ts";
import { checkedNodeId, parseHostPort } from "#base/node-id.ts";
import { type Authority, openAuthority, REVOKED_FILE } from "#security/authority/authority.ts";
import { CertificateRenewer } from "#security/authority/certificate-renewer.ts";
import { ensureNodeCertificate } from "#security/authority/node-certificate-files.ts";
import { openRevocations, type Revocations } from "#security/authority/revocations.ts";
import { signAgain } from "#security/authority/sign-again.ts";
import {
  type TlsFlags,
  type TlsMaterial,
  type TlsPaths,
  tlsPathsOf,
} from "#security/authority/tls-material.ts";

/** The certificate flags of a MetaServer. */
export interface CertificateFlags extends TlsFlags {
  /** Folder of the cluster's authority, on the one host that signs. */
  readonly caDir?: string | undefined;
  /** Life of the certificates that it signs, in days. */
  readonly certDays: number;
  /** List of revoked certificates; with -ca_dir the authority's own. */
  readonly revoked?: string | undefined;
  readonly id: string;
  /** host:port of its listener, and of its advertised address. */
  readonly listen: string | undefined;
  readonly advertise: string | undefined;
}

/** The certificates in use; everything undefined when it serves without TLS. */
export interface MetaCertificates {
  readonly renewer: CertificateRenewer | undefined;
  readonly authority: Authority | undefined;
  readonly revocations: Revocations | undefined;
  /** The server's chain; with -ca_dir it ends in the authority's certificate, for joining nodes. */
  served(): TlsMaterial | undefined;
  /** Calls back at every later change. */
  onChange(listener: (material: TlsMaterial) => void): void;
  isOwnName(name: string): boolean;
  close(): Promise<void>;
}

/**
 * Opens the flags' files. With -ca_dir and without certificate files the server issues its own into its data
 * folder. Throws BAD_ARGUMENT for unusable files.
 */
export async function openCertificates(
  flags: CertificateFlags,
  dataFolder: string,
  deps: { readonly clock: Clock; readonly log: Logger; readonly random: () => number },
): Promise<MetaCertificates> {
  const authority =
    flags.caDir === undefined
      ? undefined
      : await openAuthority(flags.caDir, { clock: deps.clock, lifetimeMs: flags.certDays * DAY_MS });
  const paths = await pathsOf(flags, dataFolder, authority, deps.clock);
  const listPath =
    flags.revoked ?? (authority === undefined ? undefined : join(authority.folder, REVOKED_FILE));
  let listener: (material: TlsMaterial) => void = () => {};
  const served = (material: TlsMaterial): TlsMaterial =>
    authority === undefined
      ? material
      : { ...material, cert: `${material.cert.trimEnd()}\n${authority.certificatePem}` };
  const renewer =
    paths === undefined
      ? undefined
      : await CertificateRenewer.open({
          ...deps,
          paths,
          uses: ["server"],
          renew: authority === undefined ? undefined : (current) => signAgain(authority, current.cert),
          onChange: (material) => listener(served(material)),
        });
  const revocations = listPath === undefined ? undefined : await openRevocations(listPath, deps);
  return {
    renewer,
    authority,
    revocations,
    served: () => (renewer === undefined ? undefined : served(renewer.material)),
    onChange(next) {
      listener = next;
    },
    isOwnName(name) {
      if (renewer === undefined || isLoopback(name)) return false;
      const own = new X509Certificate(renewer.material.cert);
      return isIP(name) === 0 ? own.checkHost(name) !== undefined : own.checkIP(name) !== undefined;
    },
    async close() {
      revocations?.close();
      await renewer?.close();
    },
  };
}

async function pathsOf(
  flags: CertificateFlags,
  dataFolder: string,
  authority: Authority | undefined,
  clock: Clock,
): Promise<TlsPaths | undefined> {
  if (authority === undefined) return tlsPathsOf(flags);
  if (flags.tlsCert !== undefined || flags.tlsKey !== undefined) {
    return tlsPathsOf({ ...flags, tlsCa: flags.tlsCa ?? authority.certificatePath });
  }
  if (flags.tlsCa !== undefined) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "-tls_ca goes with -tls_cert and -tls_key; -ca_dir alone needs none of them",
    );
  }
  const request = { id: checkedNodeId(flags.id), ...ownNames(flags) };
  const files = await ensureNodeCertificate(authority, join(dataFolder, "tls"), request, clock);
  return { cert: files.certificatePath, key: files.keyPath, ca: authority.certificatePath };
}

/** Names of the server's certificate: its flags, its host's name, and this machine. */
function ownNames(flags: CertificateFlags): { names: string[]; addresses: string[] } {
  const names = new Set(["localhost"]);
  const addresses = new Set(["127.0.0.1", "::1"]);
  const add = (host: string): void => {
    if (isIP(host) !== 0) addresses.add(host);
    else if (!/(?:^|\.)cluster\.local$/i.test(host)) names.add(host.toLowerCase());
  };
  let isEverywhere = flags.listen === undefined;
  for (const text of [flags.advertise, flags.listen]) {
    if (text === undefined) continue;
    const { host } = parseHostPort(text.startsWith(":") ? `0.0.0.0${text}` : text, { allowZero: true });
    if (host === "0.0.0.0" || host === "::") isEverywhere = true;
    else add(host);
  }
  if (isEverywhere) {
    if (/^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/i.test(hostname())) add(hostname());
    if (flags.advertise === undefined) {
      for (const list of Object.values(networkInterfaces())) {
        for (const { address, internal } of list ?? []) {
          if (!internal && !address.startsWith("fe80:")) add(address);
        }
      }
    }
  }
  return { names: [...names], addresses: [...addresses] };
}

function isLoopback(name: string): boolean {
  return name.toLowerCase() === "localhost" || name === "::1" || /^127(?:\.\d{1,3}){3}$/.test(name);
}
