// Browsers' sessions at doors: opened for an ID token that names doors as its audience, and ended.
import { GroveError } from "#base/errors.ts";
import type { Random } from "#base/random.ts";
import type { DoorSessionRecord } from "#metaserver/directory/credential-store.ts";
import type { TokenVerifier } from "#security/identity/token-verifier.ts";
import { makeDoorSession } from "#security/tickets/app-password.ts";
import type { ServiceHandlers } from "#wire/grpc/handler.ts";
import type { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { type AppPasswordDeps, type AppPasswords, RECENT_SIGN_IN_MS } from "./app-passwords.ts";
import { doorSpeakerFor } from "./door-speaker.ts";
import { signedPartOf } from "./door-tokens.ts";
import type { GroupGate } from "./group-gate.ts";
import { admitPerson } from "./subject-gate.ts";

/** Life of a browser's session; one that is not used for a day ends earlier. */
export const DOOR_SESSION_LIFE_MS: number = 7 * 24 * 3_600_000;

/** Dependencies of the routes. */
export interface DoorSessionRoutesDeps extends AppPasswordDeps {
  /** Of ID tokens for doors, which FileServers refuse; undefined where people cannot sign in at doors. */
  readonly doorTokens: TokenVerifier | undefined;
  readonly passwords: AppPasswords;
  readonly groups: Pick<GroupGate, "heard">;
  readonly random: Random;
}

/** The handlers about browsers' sessions. */
export type DoorSessionRoutes = Pick<
  ServiceHandlers<typeof MetaServer>,
  "endDoorSession" | "openDoorSession"
>;

/** Makes the handlers. */
export function doorSessionRoutes(deps: DoorSessionRoutesDeps): DoorSessionRoutes {
  const { directory, clock, log, passwords, random, mock } = deps;
  return {
    async openDoorSession({ idToken }, context) {
      const door = doorSpeakerFor(context, deps);
      const { doorTokens } = deps;
      if (doorTokens === undefined)
        throw new GroveError(
          "CLIENT_ID_UNSET",
          "sign-in at doors is not set up: IDP_DOOR_CLIENT_ID is not set on the metaserver",
        );
      const verified = await doorTokens.verify(idToken, door.address);
      const { identity, issuedAtWallMs, signedInAtWallMs } = verified;
      const nowMs = Math.trunc(clock.wallMs());
      const isMockToken = mock && issuedAtWallMs === undefined;
      if (!isMockToken && nowMs - (signedInAtWallMs ?? Number.NEGATIVE_INFINITY) > RECENT_SIGN_IN_MS)
        throw new GroveError("TOKEN_REJECTED", "this sign-in is older than ten minutes; sign in again");
      if (identity.subject === "" && !mock)
        throw new GroveError("TOKEN_REJECTED", 'a door needs a sign-in with the claim "sub"');
      // Who comes by browsers alone enters and leaves groups by these tokens.
      await admitPerson(verified, deps);
      const { username, issuer, subject } = identity;
      // The token's own id: the store takes it once, whichever MetaServer and door it comes to.
      const made = makeDoorSession(random, isMockToken ? undefined : signedPartOf(idToken));
      const record: DoorSessionRecord = {
        id: made.id,
        owner: username,
        issuer,
        subject,
        hash: made.hash.toString("hex"),
        createdMs: nowMs,
        endsMs: nowMs + DOOR_SESSION_LIFE_MS,
        lastUsedMs: nowMs,
        doors: { [door.id]: nowMs },
      };
      await directory.addDoorSession(record);
      const credential = `browser:${made.id}`;
      log.info("door_session_opened", { user: username, credential, door: door.id, peer: door.address });
      return { secret: made.text, username, endsMs: BigInt(record.endsMs) };
    },

    async endDoorSession({ secret, everywhere }, context) {
      const door = doorSpeakerFor(context, deps);
      const { record, recentUntilMs } = await passwords.identify(secret, door);
      if (recentUntilMs === undefined)
        throw new GroveError("TOKEN_REJECTED", "an app password ends no session of a browser");
      const { owner, id } = record;
      const ended = await directory.endDoorSessions(
        owner,
        everywhere ? undefined : id,
        Math.trunc(clock.wallMs()),
      );
      log.info("door_session_ended", { user: owner, ended: ended.length, door: door.id, peer: door.address });
      return { ended: ended.length };
    },
  };
}
