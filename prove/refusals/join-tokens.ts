// Join tokens that must be refused (D20): by the client that parses them, and by the server.
import { isGroveError } from "#base/errors.ts";
import { type Cluster, HOUR_MS } from "#metaserver/process/enrolment.fixture.ts";
import type { Campaign } from "#prove/campaign.ts";
import { type Door, mustBeRefused, outcomeOf } from "./credential.ts";

const MINUTE_MS = 60_000;

/** Number of tokens that this part tries. */
export const JOIN_TOKENS = 8;

/** Tries them all. */
export async function tryJoinTokens(campaign: Campaign, cluster: Cluster): Promise<void> {
  const used = await cluster.token("n7");
  await cluster.join(used);
  campaign.count("good ones accepted");
  const [first, second] = [await cluster.token("n8"), await cluster.token("n9")];
  const [selector = "", secret = "", fingerprint = ""] = first.split(".");
  const [, otherSecret = ""] = second.split(".");
  const last = secret.at(-1) === "A" ? "B" : "A";
  const expired = await cluster.token("n6");
  const variants: readonly (readonly [string, string])[] = [
    ["used", used],
    ["with another token's secret", `${selector}.${otherSecret}.${fingerprint}.n8`],
    ["with its secret's last letter changed", `${selector}.${secret.slice(0, -1)}${last}.${fingerprint}.n8`],
    ["of an unknown number", `gjt_${"0".repeat(16)}.${secret}.${fingerprint}.n8`],
    ["cut short", `${selector}.${secret.slice(0, 10)}.${fingerprint}.n8`],
    ["with a path for a number", `gjt_../../ca.${secret}.${fingerprint}.n8`],
    ["that asks for another node", `${selector}.${secret}.${fingerprint}.n5`],
  ];
  for (const [what, token] of variants) {
    cluster.clock.advance(MINUTE_MS);
    await mustBeRefused(campaign, `join token ${what}`, doorsOf(cluster, token), REFUSALS);
  }
  cluster.clock.advance(HOUR_MS);
  await mustBeRefused(campaign, "join token past its hour", doorsOf(cluster, expired), REFUSALS);
}

const REFUSALS = ["TOKEN_REJECTED", "BAD_ARGUMENT"];

function doorsOf(cluster: Cluster, token: string): Readonly<Record<string, Door>> {
  return {
    "grove node join": () => joined(cluster, token),
    joinNode: () =>
      outcomeOf(cluster.connect({ ca: cluster.authority.certificatePem }).joinNode({ token, nodeId: "n5" })),
  };
}

async function joined(cluster: Cluster, token: string): Promise<string | undefined> {
  try {
    await cluster.join(token);
    return undefined;
  } catch (error) {
    if (isGroveError(error)) return error.code;
    throw error;
  }
}
