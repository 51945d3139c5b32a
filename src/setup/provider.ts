// Checks an identity provider before anything depends on it: its discovery, its clock and its keys.
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { HAS_IDP_AUTH, NO_IDP_AUTH_TEXT } from "#base/build-flags.ts";
import { runChecks } from "#doctor/finding.ts";
import { providerChecks, providerKeysCheck } from "#doctor/provider-checks.ts";
import { createAuthorityFetch, type Fetch } from "#os/authority-fetch.ts";
import type { Answers } from "./answers.ts";
import { addressesOf, isOnlyHere, refused } from "./checks.ts";

/** A provider that lets everybody be anybody. */
export const MOCK = "mock";

const NAME_AUTHORITY = "If it is an authority of your own, give its certificate as the answer provider_ca.";
/** How a certificate stands in one line. */
const BASE64 = "base64:";

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** Where a machine keeps its copy. */
export function providerCaPath(dataFolder: string): string {
  return join(dataFolder, "provider-ca.crt");
}

/**
 * The certificates of an answer: a path, or the same in one line as `base64:…`. A file that is gone since the run
 * before is read from the copy that it made. Throws BAD_ARGUMENT.
 */
export async function authorityPem(value: string, before: Answers = {}): Promise<string | undefined> {
  if (value === "") return undefined;
  const pem = value.startsWith(BASE64)
    ? Buffer.from(value.slice(BASE64.length), "base64").toString("utf8")
    : await readFile(value, "utf8").catch((error: unknown) => readCopy(value, before, error));
  // A file with a key beside its certificate stays the only one with that key.
  const certificates = pem.match(CERTIFICATE) ?? [];
  if (certificates.length > 0 && certificates.every(isCertificate)) return `${certificates.join("\n")}\n`;
  throw refused("provider_ca holds no certificate in PEM form");
}

async function readCopy(value: string, before: Answers, error: unknown): Promise<string> {
  const { code } = error as NodeJS.ErrnoException;
  const isCopied = code === "ENOENT" && value === before.provider_ca && before.data !== undefined;
  const copy = isCopied
    ? await readFile(providerCaPath(before.data), "utf8").catch(() => undefined)
    : undefined;
  if (copy === undefined) throw refused(`cannot read ${value} (${code})`);
  return copy;
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}

/** The answer that carries a certificate to another machine. */
export function authorityAnswer(pem: string): string {
  return `${BASE64}${Buffer.from(pem).toString("base64")}`;
}

/** Checks an issuer; returns remarks. Throws BAD_ARGUMENT with what is wrong and what to do. */
export async function checkProvider(issuer: string, ca: string | undefined): Promise<string[]> {
  if (!HAS_IDP_AUTH) throw refused(`${NO_IDP_AUTH_TEXT}: "${MOCK}" is all that it can use`);
  const url = URL.parse(issuer);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.search !== "") {
    throw refused(`the provider is an address such as https://idp.example.net, or "${MOCK}" for a trial`);
  }
  if (url.protocol === "http:" && !isOnlyHere(url.hostname)) {
    throw refused(
      "a provider without https can be imitated from anywhere on the way: give its https address",
    );
  }
  await addressesOf(url.hostname.replace(/^\[(.*)\]$/, "$1"));
  const ask: Fetch = ca === undefined ? fetch : createAuthorityFetch(ca);
  const asker = { fetch: ask, nameAuthority: NAME_AUTHORITY };
  const findings = await runChecks([...providerChecks({ issuer }, asker), providerKeysCheck(issuer, ask)]);
  const bad = findings.find(({ state }) => state === "failed");
  if (bad !== undefined) throw refused(`the ${bad.name} ${bad.what}. ${bad.todo}`.trimEnd());
  return findings.filter(({ state }) => state === "warning").map(({ name, what }) => `${name}: ${what}`);
}
