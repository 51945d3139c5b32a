// RegisterClient by a ticket: a door opens or renews a session for a person (SECURITY.md, doors).
import type { AuditSink } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { UPLOAD_MESSAGE_MAX_BYTES } from "#base/limits.ts";
import type { Logger } from "#base/log.ts";
import { joinPath } from "#base/names.ts";
import { SlidingWindow } from "#base/sliding-window.ts";
import type { VerifiedIdentity } from "#base/verified-identity.ts";
import { requireNeighbour, VERSION } from "#base/version.ts";
import { type VerifiedTicket, verifyTicket } from "#security/identity/ticket-identity.ts";
import type { UserStates } from "#security/identity/user-states.ts";
import type { CreatedSession, Session } from "#security/sessions/session-table.ts";
import { TICKET_LIFE_MS } from "#security/tickets/ticket.ts";
import { parseInodeId } from "#storage/contract/inode.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { Storage } from "#storage/contract/storage.ts";
import type { RegisterClientResponse } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import type { CallingDoor } from "./door-peer.ts";
import type { DoorSessions } from "./door-sessions.ts";
import type { TicketNews } from "./ticket-news.ts";

/** Tickets of one credential that open sessions in a minute; renewals count too. */
export const DOOR_SIGN_INS_PER_MINUTE = 120;
/** Refused tickets for one network of people in a minute. */
const REFUSED_PER_MINUTE = 60;

/** Dependencies of the operation. */
export interface DoorSignInDeps {
  readonly doors: DoorSessions;
  /** Undefined on a node that stands alone. */
  readonly news: TicketNews | undefined;
  readonly nodeId: string;
  readonly mock: boolean;
  readonly admit: (identity: VerifiedIdentity) => Promise<void>;
  readonly users: Pick<UserStates, "requireEntry">;
  /** Makes the user's root where it is missing; its id is empty for one that lives elsewhere. */
  readonly roots: { ensure(user: VerifiedIdentity): Promise<string> };
  readonly storage: Pick<Storage, "locks" | "resolve" | "root">;
  readonly audit: AuditSink;
  readonly clock: Clock;
  readonly log: Logger;
}

type Plain<T> = Omit<T, "$typeName" | "$unknown">;

/** Sign-ins of doors. */
export class DoorSignIn {
  readonly #deps: DoorSignInDeps;
  readonly #taken: SlidingWindow;
  readonly #refused: SlidingWindow;

  constructor(deps: DoorSignInDeps) {
    this.#deps = deps;
    const windowMs = 60_000;
    this.#taken = new SlidingWindow(deps.clock, { count: DOOR_SIGN_INS_PER_MINUTE, windowMs });
    this.#refused = new SlidingWindow(deps.clock, { count: REFUSED_PER_MINUTE, windowMs });
  }

  /**
   * Opens a session bound to the door's key, or renews the one named. Throws TOKEN_REJECTED, USER_DISABLED,
   * RATE_LIMITED, VERSION_MISMATCH, STORE_UNAVAILABLE while no MetaServer tells which tickets count, SESSION_….
   */
  async register(
    request: { readonly ticket: string; readonly renewedToken: string; readonly version: string },
    door: CallingDoor,
  ): Promise<Plain<RegisterClientResponse>> {
    const { doors, roots, users } = this.#deps;
    requireRest(this.#refused.waitMs(door.address), "too many refused tickets for this address");
    const { ticket, renewedToken, version } = request;
    const verified = await this.#verified(ticket, door);
    requireNeighbour({ name: `door ${door.id}`, version }, "this FileServer");
    const { identity } = verified;
    requireRest(this.#taken.take(verified.ticket.credential), "too many tickets of this credential");
    const rootId = await roots.ensure(identity);
    const folderPath = await againWhenRowsCome(() => this.#folderPath(identity));
    // Checked in the turn that makes the session: a lock would not end one made later.
    users.requireEntry(identity, { exactMs: verified.ticket.issuedMs });
    const answer = { rootId, username: identity.username, folderPath };
    if (renewedToken !== "") {
      const session = doors.renew(renewedToken, verified, door);
      return this.#reply(answer, { token: renewedToken, session, isNew: false });
    }
    const created = doors.create(verified, door);
    this.#tell(created, verified, door);
    return this.#reply(answer, { token: created.token, session: created.session, isNew: true });
  }

  async #verified(text: string, door: CallingDoor): Promise<VerifiedTicket> {
    const { news } = this.#deps;
    try {
      if (news === undefined)
        throw new GroveError(
          "TOKEN_REJECTED",
          "this server stands alone: no door may speak for anybody here",
        );
      await news.fresh();
      let verified: VerifiedTicket;
      try {
        verified = this.#read(text, door, news);
      } catch {
        // The key may be younger than the last answer.
        await news.ask();
        verified = this.#read(text, door, news);
      }
      const { credential, username, issuedMs } = verified.ticket;
      if (news.isEnded({ credential, username, ticketIssuedMs: issuedMs }))
        throw new GroveError("TOKEN_REJECTED", "the credential behind the ticket was revoked");
      this.#deps.users.requireEntry(verified.identity, { exactMs: issuedMs });
      await this.#deps.admit(verified.identity);
      return verified;
    } catch (error) {
      if (isGroveError(error, "TOKEN_REJECTED", "USER_DISABLED")) this.#tellRefused(error, door);
      throw error;
    }
  }

  #read(text: string, door: CallingDoor, { clusterId, keys }: TicketNews): VerifiedTicket {
    const { nodeId: audience, mock, clock } = this.#deps;
    return verifyTicket(text, keys, {
      clusterId,
      audience,
      doorKey: door.key,
      wallMs: clock.wallMs(),
      mock,
      wallNowMs: () => clock.wallMs(),
    });
  }

  /** Where the folder of a credential lies now; empty for the whole root, and for a folder that is gone. */
  #folderPath({ username, limit }: VerifiedIdentity): string {
    const { storage } = this.#deps;
    const id = limit?.folderId === undefined ? undefined : parseInodeId(limit.folderId);
    if (id === undefined || storage.root(username) === undefined) return "";
    const [top] = storage.resolve(username, []).chain;
    const names = storage.locks.namesBelow(id, top.id);
    return names === undefined ? "" : joinPath(names);
  }

  #tell({ session }: CreatedSession, { ticket }: VerifiedTicket, door: CallingDoor): void {
    const { audit, log } = this.#deps;
    const { username, credential } = ticket;
    audit({
      act: "session.open",
      actor: username,
      subject: username,
      detail: { session: session.id, address: door.address, door: door.id, credential },
    });
    const fields = { user: username, session: session.id, address: door.address, door: door.id };
    log.info("session_opened", { ...fields, credential });
  }

  #tellRefused(error: GroveError, { id, address }: CallingDoor): void {
    if (this.#refused.take(address) > 0) return;
    this.#deps.audit({
      act: "door.refused",
      actor: "unknown",
      subject: `door ${id}`,
      detail: { address, reason: error.code, what: error.message },
    });
  }

  #reply(
    answer: Pick<RegisterClientResponse, "folderPath" | "rootId" | "username">,
    { token, session, isNew }: { readonly token: string; readonly session: Session; readonly isNew: boolean },
  ): Plain<RegisterClientResponse> {
    const { table } = this.#deps.doors;
    const { clock } = this.#deps;
    return {
      ...answer,
      sessionToken: isNew ? token : "",
      expiresAt: BigInt(Math.floor((clock.wallMs() + TICKET_LIFE_MS) / 1_000)),
      idleTimeoutSeconds: Math.floor(table.limits.idleTimeoutMs / 1_000),
      sessionsOpen: table.list(session.identity.username).length,
      evictedOldest: false,
      serverVersion: VERSION,
      maxChunkBytes: UPLOAD_MESSAGE_MAX_BYTES,
    };
  }
}

function requireRest(waitMs: number, problem: string): void {
  if (waitMs === 0) return;
  throw new GroveError("RATE_LIMITED", `${problem}; try again in ${Math.ceil(waitMs / 1_000)} seconds`, {
    metadata: { retry_after_ms: String(waitMs) },
  });
}
