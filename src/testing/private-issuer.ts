// An HTTPS identity provider for tests with a certificate of a private authority; it answers discovery and keys.
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A running provider. */
export interface PrivateIssuer {
  readonly issuer: string;
  /** File with the certificate that its clients must trust. */
  readonly caFile: string;
  stop(): void;
}

/** Makes a key and its own certificate for an address, good for two days, as files in a folder. */
export function makeIssuerCertificate(
  address: string,
  folder: string,
): { readonly key: string; readonly caFile: string } {
  const key = join(folder, "issuer.key");
  const caFile = join(folder, "issuer.pem");
  const subject = ["-subj", "/CN=issuer", "-addext", `subjectAltName=IP:${address}`];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  execFileSync("openssl", ["req", "-x509", ...kind, ...subject, "-keyout", key, "-out", caFile], {
    stdio: "ignore",
  });
  return { key, caFile };
}

/** Starts a provider on an address of this machine, by default on the loopback; it publishes these keys. */
export async function startPrivateIssuer(
  address = "127.0.0.1",
  keys: readonly unknown[] = [],
): Promise<PrivateIssuer> {
  const folder = mkdtempSync(join(tmpdir(), "grove-issuer-"));
  const { key, caFile } = makeIssuerCertificate(address, folder);
  const server = createServer({ key: readFileSync(key), cert: readFileSync(caFile) }, (request, response) => {
    response.setHeader("content-type", "application/json");
    if (request.url === "/jwks") response.end(JSON.stringify({ keys }));
    else if (request.url !== "/.well-known/openid-configuration") response.writeHead(404).end("{}");
    else {
      const metadata = {
        issuer,
        authorization_endpoint: `${issuer}/auth`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/jwks`,
      };
      response.end(JSON.stringify(metadata));
    }
  });
  server.listen(0, address);
  await once(server, "listening");
  const issuer = `https://${address}:${(server.address() as AddressInfo).port}`;
  return {
    issuer,
    caFile,
    stop() {
      server.closeAllConnections();
      server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
