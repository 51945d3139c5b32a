// Checks certificates: their names, trust, and remaining days.
import { X509Certificate } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { connect } from "node:tls";
import { DAY_MS } from "#base/duration.ts";
import { isGroveError } from "#base/errors.ts";
import { CERTIFICATE_WARNING_DAYS } from "#base/limits.ts";
import { formatHostPort, parseHostPort } from "#base/node-id.ts";
import { metaserversOf, readPastRole } from "#security/authority/node-role.ts";
import {
  type CertificateUse,
  checkUses,
  readTlsMaterial,
  type TlsPaths,
} from "#security/authority/tls-material.ts";
import { type Check, type Finding, failed, ok, warning } from "./finding.ts";

/** How a server gets another certificate. */
export const RENEW =
  "New ones come by 'grove node join -again' with a new token, or by 'grove ca renew'; of an authority of your own, from there.";

const NEW_AUTHORITY = "Make a new one in time ('A new authority' in docs/operating.md).";

/** Checks a server's certificate. `ca` is the cluster's authority as PEM; undefined trusts the system's. */
export function servedCertificateCheck(address: string, ca: string | undefined, wallMs: () => number): Check {
  const name = `certificate of ${address}`;
  return {
    name,
    async run(signal) {
      const { der, problem } = await handshake(address, ca, signal);
      if (problem !== undefined) {
        return [
          failed(
            name,
            `is not trusted: ${problem}`,
            "Check -ca or SVC_CLUSTER_CA, and the names in the certificate.",
          ),
        ];
      }
      return [lifetime(name, new X509Certificate(der), wallMs())];
    },
  };
}

/**
 * Checks a server's certificate, key and authority files: their modes, remaining days, and what a start asks.
 * `folder` is the data folder of the FileServer that has them; undefined for another server's.
 */
export function certificateFilesCheck(files: TlsPaths, wallMs: () => number, folder?: string): Check {
  const name = `certificate ${files.cert}`;
  return {
    name,
    async run() {
      const findings: Finding[] = [];
      const key = await stat(files.key).catch(() => undefined);
      if (key !== undefined && (key.mode & 0o077) !== 0) {
        findings.push(
          failed(
            name,
            `others may read its key ${files.key}`,
            `Make it yours alone: chmod 600 '${files.key}'`,
          ),
        );
      }
      try {
        const certificate = new X509Certificate((await readTlsMaterial(files, { wallMs }, [])).cert);
        checkUses(certificate, files.cert, await usesOf(certificate, folder));
        findings.push(lifetime(name, certificate, wallMs()));
      } catch (error) {
        if (!isGroveError(error, "BAD_ARGUMENT")) throw error;
        findings.push(failed(name, error.message, `No server starts with these files. ${RENEW}`));
      }
      return findings;
    },
  };
}

/** A door's is for clients alone, and a server shows every other one. A node of a cluster calls, too. */
async function usesOf(certificate: X509Certificate, folder: string | undefined): Promise<CertificateUse[]> {
  if (certificate.subjectAltName?.includes(".door.cluster.local") === true) return ["client"];
  if (folder === undefined) return ["server"];
  // The role's own check reports a defect.
  const past = await readPastRole(folder).catch(() => undefined);
  return past === undefined || metaserversOf(past).length === 0 ? ["server"] : ["server", "client"];
}

/** Checks the remaining days of the cluster's authority. */
export function authorityCheck(path: string, wallMs: () => number): Check {
  const name = `authority ${path}`;
  return {
    name,
    async run() {
      return [lifetime(name, new X509Certificate(await readFile(path)), wallMs(), NEW_AUTHORITY)];
    },
  };
}

function lifetime(name: string, certificate: X509Certificate, nowMs: number, renewal = RENEW): Finding {
  const daysLeft = Math.floor((certificate.validToDate.getTime() - nowMs) / DAY_MS);
  const until = certificate.validToDate.toISOString().slice(0, 10);
  if (certificate.validFromDate.getTime() > nowMs) {
    return failed(
      name,
      `is not valid before ${certificate.validFromDate.toISOString()}`,
      "Check the clock of this machine.",
    );
  }
  if (daysLeft < 0)
    return failed(name, `has expired on ${until}`, `Check the clock of this machine. ${renewal}`);
  if (daysLeft < CERTIFICATE_WARNING_DAYS)
    return warning(name, `has ${daysLeft} days left, until ${until}`, renewal);
  return ok(name, `has ${daysLeft} days left, until ${until}`);
}

/** Completes the handshake and closes; sends nothing. */
async function handshake(
  address: string,
  ca: string | undefined,
  signal: AbortSignal,
): Promise<{ der: Buffer; problem: string | undefined }> {
  const { host, port } = parseHostPort(address);
  const done = Promise.withResolvers<{ der: Buffer; problem: string | undefined }>();
  const socket = connect({
    host,
    port,
    ALPNProtocols: ["h2"],
    // Verified here, so that an untrusted server differs from one that is down.
    rejectUnauthorized: false,
    ...(ca === undefined ? {} : { ca }),
    ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
  });
  const onAbort = (): void => void socket.destroy(new Error("no answer"));
  signal.addEventListener("abort", onAbort, { once: true });
  socket.once("error", (cause) =>
    done.reject(new Error(`no TLS on ${formatHostPort({ host, port })}`, { cause })),
  );
  socket.once("secureConnect", () => {
    const problem = socket.authorized ? undefined : String(socket.authorizationError);
    done.resolve({ der: socket.getPeerCertificate().raw, problem });
  });
  try {
    return await done.promise;
  } finally {
    signal.removeEventListener("abort", onAbort);
    socket.destroy();
  }
}
