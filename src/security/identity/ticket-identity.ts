// The identity behind a door's ticket: a person, within the bounds of the credential.
import { GroveError } from "#base/errors.ts";
import { makeVerifiedIdentity, type VerifiedIdentity } from "#base/verified-identity.ts";
import { readTicket, type Ticket, type TicketCheck, type TicketKeys } from "#security/tickets/ticket.ts";

/** A ticket that counts. */
export interface VerifiedTicket {
  readonly identity: VerifiedIdentity;
  readonly ticket: Ticket;
}

/**
 * Verifies a ticket. A person without a subject comes in mock mode alone. Throws TOKEN_REJECTED.
 */
export function verifyTicket(
  text: string,
  keys: TicketKeys,
  check: TicketCheck & { readonly mock: boolean; readonly wallNowMs?: () => number },
): VerifiedTicket {
  const ticket = readTicket(text, keys, check);
  const { username, issuer, subject, scope } = ticket;
  if (subject === "" && !check.mock) throw new GroveError("TOKEN_REJECTED", "the ticket names no person");
  const { access, folderId, sharesUntilMs } = scope;
  const { wallNowMs } = check;
  const mayShare =
    sharesUntilMs === undefined || wallNowMs === undefined
      ? {}
      : { mayShare: () => wallNowMs() < sharesUntilMs };
  const limit = { access, folderId, ...mayShare };
  return { identity: makeVerifiedIdentity({ username, issuer, subject, limit }), ticket };
}
