// What a FileServer has to know to take tickets, as an interface: keys that sign, and credentials that ended.
import type { TicketKeys } from "#security/tickets/ticket.ts";

/** A credential of a user, and the wall time of the ticket that has shown it. */
export interface ShownCredential {
  readonly credential: string;
  readonly username: string;
  readonly ticketIssuedMs: number;
}

/** The news of MetaServers about tickets. */
export interface TicketNews {
  /** Empty before the first answer. */
  readonly clusterId: string;
  readonly keys: TicketKeys;
  /** Steady time of the last answer; minus infinity before the first. */
  readonly heardMs: number;
  /** Resolves when what is known is at most two seconds old. Throws STORE_UNAVAILABLE when nobody answers. */
  fresh(): Promise<void>;
  /** Asks now, at most once a second: a key may be newer than what is known. */
  ask(): Promise<void>;
  /** True for a credential that was revoked, or one whose ticket is from before an end of all, or of all the user's. */
  isEnded(shown: ShownCredential): boolean;
  /** Asks every two seconds while the function says so, and calls back after each answer. */
  follow(isNeeded: () => boolean, onNews: () => void): void;
}
