// The browser of tools/try-walk's person: signs in at the provider's pages, and prints the last page.
//
// Usage: node tools/walk/sign-in.ts FOLDER ADDRESS
// The folder is the provider's; the address is the one that `grove login` has printed.
import { createHash, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type SigningIn, signInOnPages } from "#e2e/browser-sign-in.ts";

const [folder = "", address = ""] = process.argv.slice(2);
const { publicKey } = new X509Certificate(await readFile(join(folder, "issuer.pem")));
const pin = createHash("sha256")
  .update(publicKey.export({ type: "spki", format: "der" }))
  .digest("base64");
const user = JSON.parse(await readFile(join(folder, "user.json"), "utf8")) as SigningIn;
// This key is trusted, and no other that lacks a public authority.
const page = await signInOnPages(new URL(address), user, [`--ignore-certificate-errors-spki-list=${pin}`]);
process.stdout.write(`${page}\n`);
if (!/signed in as /i.test(page)) process.exitCode = 1;
