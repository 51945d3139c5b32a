// Floods of forged ID tokens over a real connection: few reach the identity provider, and users are served.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { json, startProvider } from "#security/identity/provider.fixture.ts";
import { createTokenVerifier } from "#security/identity/token-verifier.ts";
import { TOKEN_FAILURES_PER_MINUTE_PER_ADDRESS } from "#security/identity/verification-budget.ts";
import { TOKEN_VERIFICATIONS_PER_ADDRESS } from "#security/identity/verification-places.ts";
import { StatusError } from "#wire/framing/status.ts";
import { nodeMessage, startForTest } from "./meta-server.fixture.ts";

test("of 1,000 forged tokens the provider sees a minute's worth; who is known is served, and the rest told when again", {
  timeout: 60_000,
}, async (t) => {
  const provider = await startProvider();
  t.after(() => provider.stop());
  const clock = new ManualClock();
  provider.answers.set("/tokeninfo", (request, response) => {
    const isGood = request.url?.includes("good") === true;
    const exp = Math.floor(clock.wallMs() / 1_000) + 3_600;
    const claims = { aud: "grove", email: "alice@example.com", email_verified: true, exp };
    json(isGood ? claims : { error: "invalid_token" }, isGood ? 200 : 400)(request, response);
  });
  const tokenVerifier = createTokenVerifier({
    clientId: "grove",
    tokeninfoUrl: `${provider.origin}/tokeninfo`,
    mock: false,
    clock,
  });
  const meta = await startForTest(t, { clock, tokenVerifier });
  const client = meta.connect();
  await client.registerFileServer(nodeMessage("a"));
  const getRoots = (token: string): Promise<unknown> =>
    client.getRoots({}, { metadata: { authorization: `Bearer ${token}` } });
  await getRoots("good");
  const outcomes = await Promise.allSettled(
    Array.from({ length: 1_000 }, (_, at) => getRoots(`forged-${at}`)),
  );
  assert.ok(
    provider.requests.length <= 1 + TOKEN_FAILURES_PER_MINUTE_PER_ADDRESS + TOKEN_VERIFICATIONS_PER_ADDRESS,
    `${provider.requests.length} of 1,000 reached the provider`,
  );
  await getRoots("good");
  const limited = outcomes.flatMap((outcome) =>
    outcome.status === "rejected" &&
    outcome.reason instanceof StatusError &&
    outcome.reason.metadata.get("svc-reason") === "RATE_LIMITED"
      ? [outcome.reason]
      : [],
  );
  assert.ok(limited.length > 900, String(limited.length));
  for (const { message, metadata, details } of limited) {
    assert.match(message, /try again in \d+ seconds?$/);
    assert.ok(Number(metadata.get("svc-retry-after-ms")) > 0);
    assert.ok(details.some(({ typeUrl }) => typeUrl.endsWith("google.rpc.RetryInfo")));
  }
  clock.advance(60_000);
  await getRoots("good-again");
});
