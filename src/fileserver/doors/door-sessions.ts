// Sessions of people who come through doors: bound to the door's key, and no longer than ticket or credential.
import type { Clock } from "#base/clock.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import type { Random } from "#base/random.ts";
import type { SecurityEventSink } from "#base/security-event.ts";
import type { VerifiedTicket } from "#security/identity/ticket-identity.ts";
import { type CreatedSession, type Session, SessionTable } from "#security/sessions/session-table.ts";
import { TICKET_LIFE_MS } from "#security/tickets/ticket.ts";
import type { CallingDoor } from "./door-peer.ts";
import type { TicketNews } from "./ticket-news.ts";

/** Sessions of doors on one node, beside those of sign-ins. */
export const DOOR_SESSIONS: number = 10_000;
/** Sessions of one user through doors; one more ends the oldest. */
export const DOOR_SESSIONS_PER_USER = 64;
/** How long they go on while no MetaServer is reached, since nobody could renew them. */
export const DOOR_SESSION_ALONE_MS = 3_600_000;
/** An older answer of the MetaServers means that they are not reached. */
const NEWS_STALE_MS = 15_000;
/** How often ended tickets are looked for; a call finds its own at once. */
const LOOK_INTERVAL_MS = 1_000;

/** Dependencies of the table. */
export interface DoorSessionsDeps {
  readonly clock: Clock;
  readonly random: Random;
  /** Undefined on a node that stands alone, to which no door comes. */
  readonly news: TicketNews | undefined;
  readonly onSecurityEvent: SecurityEventSink;
}

interface DoorSession {
  readonly credential: string;
  readonly doorId: string;
  /** Address of the person who opened it. */
  readonly address: string;
  issuedWallMs: number;
  endsMs: number;
}

/** The sessions of doors. They count in no limit of sign-ins, and no sign-in's session is here. */
export class DoorSessions {
  readonly table: SessionTable;
  readonly #deps: DoorSessionsDeps;
  readonly #open = new Map<Session, DoorSession>();
  readonly #stop: () => void;

  constructor(deps: DoorSessionsDeps) {
    this.#deps = deps;
    const limits = { perUser: DOOR_SESSIONS_PER_USER, global: DOOR_SESSIONS };
    this.table = new SessionTable({ clock: deps.clock, random: deps.random, limits });
    deps.news?.follow(
      () => this.#open.size > 0,
      () => this.look(),
    );
    this.#stop = deps.clock.every(LOOK_INTERVAL_MS, () => this.look());
  }

  /** Opens a session for a ticket. Throws SESSION_TABLE_FULL. */
  create(verified: VerifiedTicket, door: CallingDoor): CreatedSession {
    const facts = { address: door.key, clientId: `door ${door.id}`, clientVersion: "", deviceName: door.id };
    const created = this.table.create(verified.identity, facts);
    const { session } = created;
    const { credential, issuedMs } = verified.ticket;
    this.#open.set(session, {
      credential,
      doorId: door.id,
      address: door.address,
      issuedWallMs: issuedMs,
      endsMs: this.#endOf(verified),
    });
    this.table.whenEnded(session, () => this.#open.delete(session));
    return created;
  }

  /** Puts off a session's end by another ticket of the same credential. Throws SESSION_UNKNOWN, and as `check`. */
  renew(token: string, verified: VerifiedTicket, door: CallingDoor): Session {
    const session = this.check(token, door);
    const own = this.#open.get(session);
    const { credential, username, issuedMs } = verified.ticket;
    if (own?.credential !== credential || session.identity.username !== username)
      throw new GroveError("SESSION_UNKNOWN", "the ticket is of another credential than the session");
    own.issuedWallMs = Math.max(own.issuedWallMs, issuedMs);
    own.endsMs = Math.max(own.endsMs, this.#endOf(verified));
    return session;
  }

  /** The session of a token that this very door has opened. Throws SESSION_…, and IP_MISMATCH for another door. */
  check(token: string, door: CallingDoor): Session {
    let session: Session;
    try {
      session = this.table.check(token, door.key);
    } catch (error) {
      if (!isGroveError(error, "IP_MISMATCH")) throw error;
      this.#deps.onSecurityEvent({ type: "ip_mismatch", ipSeen: door.address });
      throw new GroveError("IP_MISMATCH", "the session belongs to another door");
    }
    if (!this.#endIfOver(session)) return session;
    throw new GroveError("SESSION_EXPIRED", "the ticket of this session has ended; show another");
  }

  /** The credential of an open session. Throws SESSION_UNKNOWN. */
  credentialOf(session: Session): string {
    const own = this.#open.get(session);
    if (own === undefined) throw new GroveError("SESSION_UNKNOWN", "this session has ended");
    return own.credential;
  }

  /** The credential of a session, and the address of the person who opened it. */
  factsOf(session: Session): { readonly credential: string; readonly address: string } | undefined {
    return this.#open.get(session);
  }

  /** Ends what is over, also in mid-stream. */
  look(): void {
    for (const session of this.#open.keys()) this.#endIfOver(session);
  }

  /** Stops the looks. */
  stop(): void {
    this.#stop();
  }

  #endOf({ ticket }: VerifiedTicket): number {
    const { clock } = this.#deps;
    return clock.steadyMs() + Math.min(TICKET_LIFE_MS, ticket.issuedMs + TICKET_LIFE_MS - clock.wallMs());
  }

  #endIfOver(session: Session): boolean {
    const own = this.#open.get(session);
    if (own !== undefined && !this.#isOver(own, session.identity.username)) return false;
    this.table.end(session);
    return true;
  }

  #isOver({ credential, issuedWallMs, endsMs }: DoorSession, username: string): boolean {
    const { news, clock } = this.#deps;
    if (news === undefined) return true;
    if (news.isEnded({ credential, username, ticketIssuedMs: issuedWallMs })) return true;
    const nowMs = clock.steadyMs();
    const silentMs = nowMs - news.heardMs;
    if (silentMs > DOOR_SESSION_ALONE_MS) return true;
    return nowMs >= endsMs && silentMs < NEWS_STALE_MS;
  }
}
