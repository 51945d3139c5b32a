// Keeps a node's certificate and key in a folder, and makes new ones when they are missing, old or for other
// names.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { readPrivateFile, writePrivateFile } from "#os/private-file.ts";
import { makePrivateFolder } from "#os/private-folder.ts";
import type { Authority, IssuedCertificate, NodeCertificateRequest } from "./authority.ts";
import { NODE_CERTIFICATE_LIFETIME_MS } from "./issued-certificates.ts";

/** A certificate with less time than this left is renewed. */
export const RENEW_BEFORE_MS: number = NODE_CERTIFICATE_LIFETIME_MS / 3;

/** Paths for `-tls_cert` and `-tls_key`. */
export interface NodeCertificateFiles {
  readonly certificatePath: string;
  readonly keyPath: string;
}

/**
 * Ensures that `<folder>/<id>.crt` and `<id>.key` (mode 0600) are of this authority, contain all requested
 * names and are valid for another 30 days.
 */
export async function ensureNodeCertificate(
  authority: Authority,
  folder: string,
  request: NodeCertificateRequest,
  clock: Pick<Clock, "wallMs">,
): Promise<NodeCertificateFiles> {
  const { id, names = [], addresses = [] } = request;
  const wanted = { names: [`${id}.cluster.local`, ...names], addresses };
  const place = { folder, stem: id };
  return await ensureFiles(authority, place, wanted, clock, () => authority.issueNodeCertificate(request));
}

/** The same for a door: `<folder>/<id>.crt` with the one name that doors have. */
export async function ensureDoorCertificate(
  authority: Authority,
  folder: string,
  id: string,
  clock: Pick<Clock, "wallMs">,
): Promise<NodeCertificateFiles> {
  const wanted = { names: [`${id}.door.cluster.local`], addresses: [] };
  return await ensureFiles(authority, { folder, stem: id }, wanted, clock, () =>
    authority.issueDoorCertificate(id),
  );
}

/** Names and addresses that a certificate must have. */
interface Wanted {
  readonly names: readonly string[];
  readonly addresses: readonly string[];
}

async function ensureFiles(
  authority: Authority,
  { folder, stem }: { readonly folder: string; readonly stem: string },
  wanted: Wanted,
  clock: Pick<Clock, "wallMs">,
  issue: () => Promise<IssuedCertificate>,
): Promise<NodeCertificateFiles> {
  const files = { certificatePath: join(folder, `${stem}.crt`), keyPath: join(folder, `${stem}.key`) };
  if (await isGood(authority, files, wanted, clock)) return files;
  makePrivateFolder(folder);
  const issued = await issue();
  await writePrivateFile(files.keyPath, issued.keyPem);
  await writeFileAtomic(files.certificatePath, issued.certificatePem, { mode: 0o644 });
  return files;
}

async function isGood(
  authority: Authority,
  files: NodeCertificateFiles,
  { names, addresses }: Wanted,
  clock: Pick<Clock, "wallMs">,
): Promise<boolean> {
  const pem = await readFile(files.certificatePath, "utf8").catch(() => undefined);
  const keyPem = await readPrivateFile(files.keyPath);
  if (pem === undefined || keyPem === undefined) return false;
  try {
    const certificate = new X509Certificate(pem);
    return (
      certificate.verify(new X509Certificate(authority.certificatePem).publicKey) &&
      certificate.checkPrivateKey(createPrivateKey(keyPem)) &&
      certificate.validToDate.getTime() - clock.wallMs() > RENEW_BEFORE_MS &&
      names.every((name) => certificate.checkHost(name)) &&
      addresses.every((address) => certificate.checkIP(address))
    );
  } catch {
    // It is not a certificate of this authority: a new one replaces it.
    return false;
  }
}
