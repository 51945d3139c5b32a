// ID tokens that must be refused (spec 5.2, C-09): at the FileServer's RegisterClient, and at the
// MetaServer's calls for users.
import { ManualClock } from "#base/clock.ts";
import { startTestNode, type TestNode } from "#fileserver/process/node.fixture.ts";
import { nodeMessage, startForTest } from "#metaserver/process/meta-server.fixture.ts";
import type { Campaign } from "#prove/campaign.ts";
import { lifetimeOf } from "#prove/rig-lifetime.ts";
import { CLAIM_VARIANTS, CLIENT_ID, issuedClaims, NOW_S } from "#security/identity/claims.fixture.ts";
import {
  answerAsIssuer,
  makeKey,
  signToken,
  startProvider,
  type TestProvider,
} from "#security/identity/provider.fixture.ts";
import { createTokenVerifier } from "#security/identity/token-verifier.ts";
import { type Door, mustBeAccepted, mustBeRefused, outcomeOf } from "./credential.ts";

const key = makeKey("ES256", "k1");
const stranger = makeKey("ES256", "k1");
const REFUSALS = ["TOKEN_REJECTED"];
const claimOf = (variant: (typeof CLAIM_VARIANTS)[number]): string | undefined =>
  "issuer" in variant ? variant.issuer : variant.tokeninfo;
const BAD_CLAIMS = CLAIM_VARIANTS.filter((variant) => claimOf(variant) !== undefined);
const FORGED = 9;

/** Number of tokens that this part tries. */
export const ID_TOKENS: number = BAD_CLAIMS.length + FORGED;

/** Tries them all. */
export async function tryIdTokens(campaign: Campaign): Promise<void> {
  const provider = await startIssuer(campaign);
  const clock = new ManualClock(NOW_S * 1_000);
  const node = await startTestNode({
    clock,
    env: { SVC_AUTH_MOCK: "0", IDP_CLIENT_ID: CLIENT_ID, IDP_ISSUER: provider.origin },
  });
  campaign.atEnd(() => node.stop());
  const tokenVerifier = createTokenVerifier({
    clientId: CLIENT_ID,
    issuer: provider.origin,
    mock: false,
    clock,
  });
  const meta = await startForTest(lifetimeOf(campaign), { clock, tokenVerifier });
  const client = meta.connect();
  // Without a node there is no place for the good token's root.
  await client.registerFileServer(nodeMessage("a"));
  const doorsOf = (token: string): Readonly<Record<string, Door>> => {
    const options = { metadata: { authorization: `Bearer ${token}` } };
    return {
      registerClient: () => signIn(node, token),
      getRoots: () => outcomeOf(client.getRoots({}, options)),
    };
  };
  const claims = (change?: object): object => issuedClaims(provider.origin, change);
  const good = signToken(key, claims());
  await mustBeAccepted(campaign, "ID token", doorsOf(good));
  for (const variant of BAD_CLAIMS)
    await mustBeRefused(
      campaign,
      `ID token: ${variant.what}`,
      doorsOf(signToken(key, claims(variant.change))),
      REFUSALS,
    );
  const [header = "", payload = "", signature = ""] = good.split(".");
  const [, otherPayload = ""] = signToken(key, claims({ email: "admin@example.com" })).split(".");
  const forged: readonly (readonly [string, string])[] = [
    ["signed by another key", signToken(stranger, claims())],
    ["that brings its key along", signToken(stranger, claims(), { jwk: stranger.jwk })],
    ["with other claims under its signature", `${header}.${otherPayload}.${signature}`],
    ["without a signature", `${header}.${payload}.`],
    ["of the algorithm none", signToken(key, claims(), { alg: "none" })],
    ["of the algorithm HS256", signToken(key, claims(), { alg: "HS256" })],
    ["of an unknown key", signToken(key, claims(), { kid: "nobody" })],
    ["of two parts", `${header}.${payload}`],
  ];
  for (const [what, token] of forged)
    await mustBeRefused(campaign, `ID token ${what}`, doorsOf(token), REFUSALS);
  await mustBeRefused(campaign, "mock token", doorsOf("mock-jwt.alice@example.com"), ["MOCK_TOKEN"]);
}

function signIn(node: TestNode, token: string): Promise<string | undefined> {
  const metadata = { authorization: `Bearer ${token}` };
  return outcomeOf(node.anonymous.registerClient({}, { metadata }));
}

async function startIssuer(campaign: Campaign): Promise<TestProvider> {
  const provider = await startProvider();
  campaign.atEnd(() => provider.stop());
  answerAsIssuer(provider, key);
  return provider;
}
