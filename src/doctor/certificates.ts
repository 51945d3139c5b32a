// Checks certificates: their names, trust, and remaining days.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { connect } from "node:tls";
import { DAY_MS } from "#base/duration.ts";
import { CERTIFICATE_WARNING_DAYS } from "#base/limits.ts";
import { formatHostPort, parseHostPort } from "#base/node-id.ts";
import { type Check, type Finding, failed, ok, warning } from "./finding.ts";

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

/** Checks a server's certificate, key and authority files: modes, match, and remaining days. */
export function certificateFilesCheck(
  files: { readonly cert: string; readonly key: string; readonly ca: string },
  wallMs: () => number,
): Check {
  const name = `certificate ${files.cert}`;
  return {
    name,
    async run() {
      const [cert, key, ca] = await Promise.all(
        [files.cert, files.key, files.ca].map((path) => readFile(path)),
      );
      const certificate = new X509Certificate(cert ?? "");
      const authority = new X509Certificate(ca ?? "");
      const findings: Finding[] = [];
      const { mode } = await stat(files.key);
      if ((mode & 0o077) !== 0) {
        findings.push(
          failed(
            name,
            `others may read its key ${files.key}`,
            `Make it yours alone: chmod 600 '${files.key}'`,
          ),
        );
      }
      if (!certificate.checkPrivateKey(createPrivateKey(key ?? ""))) {
        findings.push(
          failed(name, `${files.key} is not its key`, "Put the key beside it that it was made with."),
        );
      }
      if (!certificate.verify(authority.publicKey)) {
        findings.push(
          failed(
            name,
            `was not signed by ${files.ca}`,
            "Take the certificate and the authority of one cluster.",
          ),
        );
      }
      findings.push(lifetime(name, certificate, wallMs()));
      return findings;
    },
  };
}

/** Checks the remaining days of the cluster's authority. */
export function authorityCheck(path: string, wallMs: () => number): Check {
  const name = `authority ${path}`;
  return {
    name,
    async run() {
      return [lifetime(name, new X509Certificate(await readFile(path)), wallMs())];
    },
  };
}

function lifetime(name: string, certificate: X509Certificate, nowMs: number): Finding {
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
    return failed(name, `has expired on ${until}`, "Renew it, or check the clock of this machine.");
  if (daysLeft < CERTIFICATE_WARNING_DAYS)
    return warning(name, `has ${daysLeft} days left, until ${until}`, "Renew it.");
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
