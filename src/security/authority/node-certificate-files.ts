// Keeps a node's certificate and key in a folder, and makes new ones when they are missing, old or for other
// names.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { readPrivateFile, writePrivateFile } from "#os/private-file.ts";
import { makePrivateFolder } from "#os/private-folder.ts";
import type { Authority, NodeCertificateRequest } from "./authority.ts";
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
  const files = {
    certificatePath: join(folder, `${request.id}.crt`),
    keyPath: join(folder, `${request.id}.key`),
  };
  if (await isGood(authority, files, request, clock)) return files;
  makePrivateFolder(folder);
  const issued = await authority.issueNodeCertificate(request);
  await writePrivateFile(files.keyPath, issued.keyPem);
  await writeFileAtomic(files.certificatePath, issued.certificatePem, { mode: 0o644 });
  return files;
}

async function isGood(
  authority: Authority,
  files: NodeCertificateFiles,
  request: NodeCertificateRequest,
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
      [`${request.id}.cluster.local`, ...(request.names ?? [])].every((name) =>
        certificate.checkHost(name),
      ) &&
      (request.addresses ?? []).every((address) => certificate.checkIP(address))
    );
  } catch {
    // It is not a certificate of this authority: a new one replaces it.
    return false;
  }
}
