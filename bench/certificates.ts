// Makes certificates for the encrypted rows once per run; programs find their folder in the environment.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Environment variable that names the folder; unset means plain. */
export const TLS_FOLDER = "GROVE_BENCH_TLS";

/** Makes an authority and a server's certificate in `folder`: ca.crt, server.crt, server.key. */
export function makeCertificates(folder: string): void {
  const run = (...args: string[]): unknown => execFileSync("openssl", args, { cwd: folder, stdio: "ignore" });
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  run("req", "-x509", ...key, "-keyout", "ca.key", "-out", "ca.crt", "-days", "1", "-subj", "/CN=bench");
  run("req", "-new", ...key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost");
  writeFileSync(join(folder, "san"), "subjectAltName=DNS:localhost,IP:127.0.0.1");
  run(
    "x509",
    "-req",
    "-in",
    "server.csr",
    "-CA",
    "ca.crt",
    "-CAkey",
    "ca.key",
    "-CAcreateserial",
    "-days",
    "1",
    "-extfile",
    "san",
    "-out",
    "server.crt",
  );
}

/** Certificate and key of a server on 127.0.0.1 and localhost; undefined for a program without TLS. */
export function serverCertificate(): { cert: Buffer; key: Buffer } | undefined {
  const folder = tlsFolder();
  if (folder === undefined) return undefined;
  return { cert: readFileSync(join(folder, "server.crt")), key: readFileSync(join(folder, "server.key")) };
}

/** The authority that clients trust; undefined for a program without TLS. */
export function trustedAuthority(): Buffer | undefined {
  const folder = tlsFolder();
  return folder === undefined ? undefined : readFileSync(join(folder, "ca.crt"));
}

function tlsFolder(): string | undefined {
  const folder = process.env[TLS_FOLDER];
  return folder === "" ? undefined : folder;
}
