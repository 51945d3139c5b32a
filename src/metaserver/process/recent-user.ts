// Who may change credentials and sessions of doors: somebody whose sign-in is of the last ten minutes.
import { isDoorSecret } from "#base/door-call.ts";
import { type ErrorCode, GroveError } from "#base/errors.ts";
import type { VerifiedIdentity } from "#base/verified-identity.ts";
import type { TokenVerifier } from "#security/identity/token-verifier.ts";
import type { CallContext } from "#wire/grpc/handler.ts";
import { type AppPasswordDeps, type AppPasswords, RECENT_SIGN_IN_MS } from "./app-passwords.ts";
import { idTokenOf } from "./call-gate.ts";
import { doorSpeakerFor } from "./door-speaker.ts";
import { admitPerson, type PersonEntryDeps } from "./subject-gate.ts";

const OLD_SIGN_IN = "this needs a sign-in of the last ten minutes; sign in again";

/** Dependencies of the rule. */
export interface RecentUserDeps extends AppPasswordDeps {
  readonly tokenVerifier: TokenVerifier;
  readonly passwords: AppPasswords;
  readonly groups: PersonEntryDeps["groups"];
}

/** Somebody who may, and where they are. */
export interface RecentUser extends Pick<VerifiedIdentity, "issuer" | "subject" | "username"> {
  /** Network address of the person, also where a door calls for them. */
  readonly address: string;
  /** The door by which they come; undefined for an ID token. */
  readonly doorId?: string;
  /** Id of the browser's session by which they come. */
  readonly sessionId?: string;
}

/**
 * The person behind a call: by an ID token, or by a browser's session that a door brings. Throws TOKEN_REJECTED
 * and NOT_OWNER for a sign-in that is older than ten minutes, and for an app password; and why neither counts.
 */
export async function requireRecentUser(context: CallContext, deps: RecentUserDeps): Promise<RecentUser> {
  const { tokenVerifier, clock, mock } = deps;
  const token = idTokenOf(context);
  if (isDoorSecret(token)) return await requireRecentBrowser(token, context, deps);
  const { address } = context.peer;
  const verified = await tokenVerifier.verify(token, address);
  const { identity, issuedAtWallMs, signedInAtWallMs } = verified;
  await admitPerson(verified, deps);
  const { username, issuer, subject } = identity;
  const isMockToken = mock && issuedAtWallMs === undefined;
  const ageMs = clock.wallMs() - (signedInAtWallMs ?? Number.NEGATIVE_INFINITY);
  if (!isMockToken && ageMs > RECENT_SIGN_IN_MS) {
    tellRefused(context, deps, { user: username, peer: address, reason: "TOKEN_REJECTED" });
    throw new GroveError("TOKEN_REJECTED", OLD_SIGN_IN, {
      metadata: { claim: signedInAtWallMs === issuedAtWallMs ? "iat" : "auth_time" },
    });
  }
  if (subject === "" && !mock)
    throw new GroveError("TOKEN_REJECTED", 'an app password needs a sign-in with the claim "sub"');
  return { username, issuer, subject, address };
}

/** The same for a browser's session. */
async function requireRecentBrowser(
  secret: string,
  context: CallContext,
  deps: RecentUserDeps,
): Promise<RecentUser> {
  const door = doorSpeakerFor(context, deps);
  const { id: doorId, address } = door;
  const { record, credential, recentUntilMs } = await deps.passwords.identify(secret, door);
  const { id: sessionId, owner: username, issuer, subject } = record;
  const isOfProgram = recentUntilMs === undefined;
  if (isOfProgram || deps.clock.wallMs() >= recentUntilMs) {
    const why = isOfProgram ? "an app password may not do this; sign in" : OLD_SIGN_IN;
    tellRefused(context, deps, {
      user: username,
      credential,
      door: doorId,
      peer: address,
      reason: "NOT_OWNER",
    });
    throw new GroveError("NOT_OWNER", `permission denied: ${why}`);
  }
  return { username, issuer, subject, address, doorId, sessionId };
}

/** What is known of somebody whose call was refused. */
interface Refused {
  readonly user: string;
  readonly credential?: string;
  readonly door?: string | undefined;
  /** Network address of the person. */
  readonly peer: string;
  readonly reason: ErrorCode;
}

/** Logs a refusal with the person and their address, a few lines a minute for each of them and method. */
export function tellRefused({ method }: CallContext, deps: RecentUserDeps, refused: Refused): void {
  const { reason, user, peer } = refused;
  const sampled = deps.refusals.take(`${reason} ${method.name} ${user} ${peer}`);
  if (sampled !== undefined)
    deps.log.warn("credential_call_refused", { method: method.name, ...refused, ...sampled });
}
