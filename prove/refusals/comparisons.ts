// Checks that the sources compare secrets only by the one constant-time function (C-12).
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Campaign } from "#prove/campaign.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const THE_ONE = "src/base/constant-time.ts";
/** Files that compare a secret with a caller's value, and how often. */
const COMPARERS: Readonly<Record<string, number>> = {
  "src/security/authority/join-tokens.ts": 1,
  "src/client/signin/callback-server.ts": 1,
  "src/console/routes/status-routes.ts": 1,
  "src/devcluster/sign-in-routes.ts": 1,
  "src/fileserver/front/metrics-listener.ts": 1,
  "src/security/identity/admin-password.ts": 3,
};
/** Names of secrets. */
const SECRET = /(?:token|secret|password|passwordhash|verifier)$/i;
/** A comparison that stops at the first difference, with the words on both sides of it. */
const HASTY =
  /([\w.#?]+)\)?\s*[!=]==?\s*([\w.#?"'-]+)|([\w.#?]+)\.(?:equals|compare|localeCompare)\(([\w.#?]+)/g;
/** A value compared with one of these is checked for its presence, not its content. */
const PLAIN = /^(?:undefined|null|true|false|["'\d-].*)$/;
/** Comparisons that match and compare no secret. */
const NO_SECRETS: readonly string[] = [
  // A page's token is the place in a list.
  "nextPageToken === pageToken",
  // An identity check of the object.
  "password === this.#password",
  // The client compares its own memory with its own memory.
  "stored.token !== refusedToken",
];

/** Searches src/, and reports each comparison of secrets that does not use the function. */
export async function checkComparisons(campaign: Campaign): Promise<void> {
  const entries = await readdir(join(ROOT, "src"), { recursive: true, withFileTypes: true });
  let read = 0;
  for (const entry of entries) {
    if (!entry.isFile() || !/^(?!.*\.(?:test|fixture)\.ts$).*\.ts$/.test(entry.name)) continue;
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(ROOT.length);
    if (/\/gen\//.test(name)) continue;
    checkFile(campaign, name, await readFile(path, "utf8"));
    read++;
  }
  campaign.figure("sources read", read);
  if (read < Object.keys(COMPARERS).length) throw new Error("the sources were not found");
}

function checkFile(campaign: Campaign, name: string, text: string): void {
  if (name !== THE_ONE && /\btimingSafeEqual\b/.test(text))
    campaign.violation(`${name} compares by timingSafeEqual of its own instead of ${THE_ONE}`);
  if (name === THE_ONE && !/return timingSafeEqual\(/.test(text))
    campaign.violation(`${name} does not compare by timingSafeEqual`);
  const calls = [...text.matchAll(/(?<!import \{ )\bconstantTimeEqual\(/g)].length;
  const expected = COMPARERS[name];
  if (expected !== undefined && calls < expected)
    campaign.violation(`${name} calls constantTimeEqual ${calls} times instead of ${expected}`);
  for (const [index, line] of text.split("\n").entries()) {
    if (/^\s*(?:\/\/|\*|\/\*)/.test(line) || NO_SECRETS.some((known) => line.includes(known))) continue;
    if (isHasty(line))
      campaign.violation(
        `${name}:${index + 1} compares a secret so that the time taken tells of it: ${line.trim()}`,
      );
  }
}

function isHasty(line: string): boolean {
  for (const [, left, right, object, argument] of line.matchAll(HASTY)) {
    const sides = [left ?? object ?? "", right ?? argument ?? ""];
    if (sides.some((side) => SECRET.test(side)) && !sides.some((side) => PLAIN.test(side))) return true;
  }
  return false;
}
