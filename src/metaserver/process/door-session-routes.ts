// Browsers' sessions at doors: opened for an ID token that names doors as its audience, listed, and ended.
import type { AuditSink } from "#base/audit-act.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import type { Random } from "#base/random.ts";
import { isSamePerson } from "#base/verified-identity.ts";
import type { DoorSessionRecord } from "#metaserver/directory/credential-store.ts";
import { signedPartOf } from "#security/identity/door-tokens.ts";
import type { TokenVerifier } from "#security/identity/token-verifier.ts";
import { makeDoorSession } from "#security/tickets/app-password.ts";
import { browserName } from "#security/tickets/browser-name.ts";
import type { ServiceHandlers } from "#wire/grpc/handler.ts";
import type { BrowserSession, MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { isSessionOver, RECENT_SIGN_IN_MS } from "./app-passwords.ts";
import { doorSpeakerFor } from "./door-speaker.ts";
import type { GroupGate } from "./group-gate.ts";
import { type RecentUser, type RecentUserDeps, requireRecentUser, tellRefused } from "./recent-user.ts";
import { admitPerson } from "./subject-gate.ts";

/** Life of a browser's session; one that is not used for a day ends earlier. */
export const DOOR_SESSION_LIFE_MS: number = 7 * 24 * 3_600_000;

/** Dependencies of the routes. */
export interface DoorSessionRoutesDeps extends RecentUserDeps {
  /** Of ID tokens for doors, which FileServers refuse; undefined where people cannot sign in at doors. */
  readonly doorTokens: TokenVerifier | undefined;
  readonly groups: Pick<GroupGate, "heard">;
  readonly random: Random;
  readonly audit: AuditSink;
}

/** The handlers about browsers' sessions. */
export type DoorSessionRoutes = Pick<
  ServiceHandlers<typeof MetaServer>,
  "endBrowserSessions" | "endDoorSession" | "listBrowserSessions" | "openDoorSession"
>;

/** Makes the handlers. */
export function doorSessionRoutes(deps: DoorSessionRoutesDeps): DoorSessionRoutes {
  const { directory, clock, audit, log, passwords, random, mock } = deps;
  return {
    async openDoorSession({ idToken, userAgent }, context) {
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
        address: door.address,
        browser: browserName(userAgent),
        endsMs: nowMs + DOOR_SESSION_LIFE_MS,
        lastUsedMs: nowMs,
        doors: { [door.id]: nowMs },
      };
      await directory.addDoorSession(record);
      passwords.made(record.hash);
      const credential = `browser:${made.id}`;
      log.info("door_session_opened", { user: username, credential, door: door.id, peer: door.address });
      const detail = { credential, door: door.id, address: door.address };
      audit({ act: "session.open", actor: username, subject: username, detail });
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
        everywhere ? undefined : [id],
        Math.trunc(clock.wallMs()),
      );
      log.info("door_session_ended", { user: owner, ended: ended.length, door: door.id, peer: door.address });
      return { ended: ended.length };
    },
    ...ownSessionRoutes(deps),
  };
}

/** The handlers by which people see and end their own. */
function ownSessionRoutes(
  deps: DoorSessionRoutesDeps,
): Pick<DoorSessionRoutes, "endBrowserSessions" | "listBrowserSessions"> {
  const { directory, clock, log } = deps;
  return {
    async listBrowserSessions(_request, context) {
      const user = await requireRecentUser(context, deps);
      const open = await openSessionsOf(user, deps);
      return { sessions: open.map((record) => message(record, user)).toReversed() };
    },

    async endBrowserSessions({ which }, context) {
      const user = await requireRecentUser(context, deps);
      if (which.case === undefined || which.value === "" || which.value === false)
        throw new GroveError("BAD_ARGUMENT", "say which session is to end, or all others");
      const chosen = (await openSessionsOf(user, deps)).filter(({ id }) =>
        which.case === "id" ? id === which.value : id !== user.sessionId,
      );
      const { username, address: peer, doorId: door } = user;
      if (which.case === "id" && chosen.length === 0) {
        // Another person's is answered as one that never was.
        tellRefused(context, deps, { user: username, door, peer, reason: "BAD_ARGUMENT" });
        throw new GroveError("BAD_ARGUMENT", "you have no session of that id");
      }
      const ids = chosen.map(({ id }) => id);
      const ended = await directory.endDoorSessions(username, ids, Math.trunc(clock.wallMs()));
      for (const { id } of ended)
        log.info("browser_session_ended", { user: username, credential: `browser:${id}`, door, peer });
      return { ended: ended.map((record) => message(record, user)) };
    },
  };
}

/** The person's sessions that still open something, the oldest first. */
async function openSessionsOf(user: RecentUser, deps: RecentUserDeps): Promise<DoorSessionRecord[]> {
  const { directory, clock, userStates } = deps;
  const nowMs = clock.wallMs();
  return (await directory.doorSessionsOf(user.username)).filter((record) => {
    // An address may have belonged to somebody else, whose sessions open nothing any more.
    if (!isSamePerson(record, user)) return false;
    if (isSessionOver(record, nowMs)) return false;
    try {
      userStates.requireEntry(user, { exactMs: record.createdMs });
      return true;
    } catch (error) {
      if (isGroveError(error)) return false;
      throw error;
    }
  });
}

function message(
  { id, browser, address, createdMs, lastUsedMs, endsMs }: DoorSessionRecord,
  { sessionId }: RecentUser,
): Omit<BrowserSession, "$typeName" | "$unknown"> {
  return {
    id,
    browser: browser ?? "",
    address: address ?? "",
    beganMs: BigInt(createdMs),
    lastUsedMs: BigInt(Math.trunc(Math.max(lastUsedMs, createdMs))),
    endsMs: BigInt(endsMs),
    current: id === sessionId,
  };
}
