// Sessions of visitors by links: bound to the door's key, apart from those of people, and over with their link.
import type { Clock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { networkOf } from "#base/network.ts";
import type { Random } from "#base/random.ts";
import type { LinkRight, VerifiedIdentity } from "#base/verified-identity.ts";
import { type CreatedSession, type Session, SessionTable } from "#security/sessions/session-table.ts";
import { RowsToCome } from "#storage/contract/rows-to-come.ts";
import type { CallingDoor } from "./door-peer.ts";
import type { LinkGate } from "./link-gate.ts";

/** Sessions of visitors on one node. */
export const LINK_SESSIONS: number = 10_000;
/** Sessions of one link's visitors; one more ends the oldest, which its door opens anew. */
export const LINK_SESSIONS_PER_LINK: number = 1_000;
/** Those of one network of visitors, by all links; one more ends its own that was not used for longest. */
export const LINK_SESSIONS_PER_NETWORK: number = 250;
/** How often ended links are looked for; a call finds its own at once. */
const LOOK_INTERVAL_MS = 1_000;

/** The sessions of visitors. */
export class LinkSessions {
  readonly table: SessionTable;
  readonly #gate: Pick<LinkGate, "goesOn">;
  readonly #open = new Set<Session>();
  readonly #ofNetwork = new Map<string, Set<Session>>();
  readonly #stop: () => void;

  constructor(deps: {
    readonly gate: Pick<LinkGate, "goesOn">;
    readonly clock: Clock;
    readonly random: Random;
  }) {
    this.#gate = deps.gate;
    const limits = { perUser: LINK_SESSIONS_PER_LINK, global: LINK_SESSIONS };
    this.table = new SessionTable({ clock: deps.clock, random: deps.random, limits });
    this.#stop = deps.clock.every(LOOK_INTERVAL_MS, () => this.look());
  }

  /** Opens a session that this door alone can use. Throws SESSION_TABLE_FULL. */
  create(identity: VerifiedIdentity, door: CallingDoor): CreatedSession {
    const network = networkOf(door.address);
    this.#makeRoom(network);
    const facts = { address: door.key, clientId: `door ${door.id}`, clientVersion: "", deviceName: door.id };
    const created = this.table.create(identity, facts);
    const { session } = created;
    this.#open.add(session);
    const ofNetwork = this.#ofNetwork.get(network) ?? new Set<Session>();
    this.#ofNetwork.set(network, ofNetwork.add(session));
    this.table.whenEnded(session, () => {
      this.#open.delete(session);
      ofNetwork.delete(session);
      if (ofNetwork.size === 0 && this.#ofNetwork.get(network) === ofNetwork) this.#ofNetwork.delete(network);
    });
    return created;
  }

  /** The session of a token that this door has opened. Throws SESSION_…, and IP_MISMATCH for another door. */
  check(token: string, door: CallingDoor): Session {
    return this.table.check(token, door.key);
  }

  /** Ends all sessions of a link, also in mid-stream. */
  endOf(username: string): void {
    this.table.endAll(username);
  }

  /** Ends the sessions whose link is over, also in mid-stream. */
  look(): void {
    const judged = new Map<string, boolean>();
    for (const session of this.#open) {
      const { link } = session.identity;
      // One that has expired is forgotten here, since nobody may come with its token again.
      if (link === undefined || !this.table.isLive(session)) continue;
      let goesOn = judged.get(link.id);
      if (goesOn === undefined) {
        goesOn = this.#mayGoOn(link);
        judged.set(link.id, goesOn);
      }
      if (!goesOn) this.table.end(session);
    }
  }

  /** True also while storage cannot say: its calls are refused then, and the next look asks again. */
  #mayGoOn(link: LinkRight): boolean {
    try {
      return this.#gate.goesOn(link);
    } catch (error) {
      if (error instanceof RowsToCome || isGroveError(error, "STORE_UNAVAILABLE")) return true;
      throw error;
    }
  }

  /** A network's visitors give way to one another: a link's other visitors keep theirs. */
  #makeRoom(network: string): void {
    const own = this.#ofNetwork.get(network);
    if (own === undefined || own.size < LINK_SESSIONS_PER_NETWORK) return;
    let oldest: Session | undefined;
    for (const session of own)
      if (oldest === undefined || session.lastUsedWallMs < oldest.lastUsedWallMs) oldest = session;
    if (oldest !== undefined) this.table.end(oldest);
  }

  /** Stops the looks. */
  stop(): void {
    this.#stop();
  }
}
