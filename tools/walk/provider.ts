// The identity provider of tools/try-walk: the demonstration's, over HTTPS on one address, until a signal.
//
// Usage: node tools/walk/provider.ts ADDRESS FOLDER
// The folder gets issuer.pem, user.json with who can sign in, and issuer last: its address, once it serves.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFile, rename, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { createDemoProvider } from "#devcluster/demo-provider.ts";
import { makeProviderKeys } from "#devcluster/provider-settings.ts";
import type { SigningIn } from "#e2e/browser-sign-in.ts";
import { createLogger } from "#os/logger.ts";
import { makeIssuerCertificate } from "#testing/private-issuer.ts";

const [address = "", folder = ""] = process.argv.slice(2);
const { key, caFile } = makeIssuerCertificate(address, folder);
const server = createServer({ key: await readFile(key), cert: await readFile(caFile) });
server.listen(0, address);
await once(server, "listening");
const { port } = server.address() as AddressInfo;
const issuer = `https://${address}:${port}`;
const user: SigningIn = { email: "alice@example.com", password: randomBytes(12).toString("base64url") };
const provider = createDemoProvider({
  issuer,
  settings: {
    port,
    clientId: "grove-walk",
    redirectUris: ["http://localhost:38485/logincallback"],
    ...(await makeProviderKeys()),
    users: [{ ...user, name: "Alice" }],
  },
  clock: systemClock,
  log: createLogger({ destination: "stderr", fields: { role: "idp" } }),
});
server.on("request", (request, response) => provider.emit("request", request, response));
await writeFile(join(folder, "user.json"), JSON.stringify(user), { mode: 0o600 });
await writeFile(join(folder, "issuer.new"), issuer);
await rename(join(folder, "issuer.new"), join(folder, "issuer"));
