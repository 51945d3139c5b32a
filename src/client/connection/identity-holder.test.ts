// Tests that a running command goes on by what its user signs in with meanwhile, and by nobody else's sign-in.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { IdentityHolder } from "./identity-holder.ts";
import { SessionCache, type StoredIdentity } from "./session-cache.ts";

const HOUR_MS = 3_600_000;

/** What a sign-in stores: a token of an hour, for a client of an identity provider. */
function signIn(clock: ManualClock, username: string, aud = "grove"): StoredIdentity {
  const expiresAtMs = Math.trunc(clock.wallMs()) + HOUR_MS;
  const claims = {
    iss: "https://idp.example.com",
    aud,
    email: username,
    exp: Math.trunc(expiresAtMs / 1_000),
  };
  const idToken = `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.c2ln`;
  return { username, idToken, expiresAtMs };
}

async function holderOf(clock: ManualClock): Promise<{ cache: SessionCache; holder: IdentityHolder }> {
  const cache = new SessionCache(scratchFolder("grove-identity-"));
  await cache.writeIdentity(signIn(clock, "a@example.com"));
  const holder = new IdentityHolder(cache, clock);
  await holder.idToken("a session is needed");
  clock.advance(2 * HOUR_MS);
  assert.equal(await holder.hasToken(), false);
  await assert.rejects(holder.idToken("a session is needed"), { code: "SIGN_IN_NEEDED" });
  return { cache, holder };
}

test("a command whose ID token has expired goes on once its user has signed in by another one", async () => {
  const clock = new ManualClock();
  const { cache, holder } = await holderOf(clock);
  const again = signIn(clock, "a@example.com");
  await cache.writeIdentity(again);
  assert.equal(await holder.hasToken(), true);
  assert.equal(await holder.idToken("a session is needed"), again.idToken);
});

test("it takes no token of another user, nor one for another cluster's client", async () => {
  const clock = new ManualClock();
  const { cache, holder } = await holderOf(clock);
  for (const other of [signIn(clock, "b@example.com"), signIn(clock, "a@example.com", "other")]) {
    await cache.writeIdentity(other);
    assert.equal(await holder.hasToken(), false);
    await assert.rejects(holder.idToken("a session is needed"), { code: "SIGN_IN_NEEDED" });
  }
});
