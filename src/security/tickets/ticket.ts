// Tickets: what a MetaServer signs for a door, so that a FileServer knows in whose name the door comes.
import { type KeyObject, sign, verify } from "node:crypto";
import { constantTimeEqual } from "#base/constant-time.ts";
import { GroveError } from "#base/errors.ts";
import type { Scope } from "./scope.ts";

/** Milliseconds for which a ticket is good. */
export const TICKET_LIFE_MS = 300_000;

/** Milliseconds by which the clocks of a MetaServer and a FileServer may differ. */
const CLOCK_SKEW_MS = 30_000;

/** Characters of a ticket, at most. */
const TICKET_MAX_LENGTH = 4096;

/** Keeps a signature of a ticket from being one of anything else. */
const DOMAIN = "grove ticket 1\0";

/** What a ticket says. */
export interface Ticket {
  readonly clusterId: string;
  readonly username: string;
  /** The person behind the address; a user without them gets a ticket in mock mode only. */
  readonly issuer: string;
  readonly subject: string;
  /** Id of the one FileServer that may take it. */
  readonly audience: string;
  /** SHA-256 of the door's public key in DER (SPKI), as hexadecimal digits. */
  readonly doorKey: string;
  readonly scope: Scope;
  /** The credential behind it, such as "app:…" or "browser:…". */
  readonly credential: string;
  /** Wall time of the making, unix milliseconds. */
  readonly issuedMs: number;
}

/** A key that signs, with the name under which FileServers know its public half. */
export interface TicketKey {
  readonly id: string;
  readonly privateKey: KeyObject;
}

/** Public keys by name: at most two, while one is replaced. */
export type TicketKeys = ReadonlyMap<string, KeyObject>;

/** Who checks a ticket, and when. */
export interface TicketCheck {
  readonly clusterId: string;
  readonly audience: string;
  /** The key of the certificate over which the ticket came. */
  readonly doorKey: string;
  readonly wallMs: number;
}

/** Signs a ticket (Ed25519). */
export function signTicket(ticket: Ticket, { id, privateKey }: TicketKey): string {
  const body = Buffer.from(JSON.stringify({ key: id, ...ticket })).toString("base64url");
  const signature = sign(null, Buffer.from(DOMAIN + body), privateKey);
  return `${body}.${signature.toString("base64url")}`;
}

/**
 * The ticket in a text that a known key has signed, for this cluster, this FileServer, this door and this moment. Throws
 * TOKEN_REJECTED, without a word of what was wrong that helps a forger.
 */
export function readTicket(text: string, keys: TicketKeys, check: TicketCheck): Ticket {
  const [body = "", signature = "", more] = text.length <= TICKET_MAX_LENGTH ? text.split(".", 3) : [];
  const fields = more === undefined ? fieldsOf(body) : undefined;
  const key = typeof fields?.["key"] === "string" ? keys.get(fields["key"]) : undefined;
  if (fields === undefined || key === undefined) throw rejected("is not one of this cluster");
  if (!verify(null, Buffer.from(DOMAIN + body), key, Buffer.from(signature, "base64url"))) {
    throw rejected("is not one of this cluster");
  }
  const ticket = ticketOf(fields);
  if (ticket === undefined || ticket.clusterId !== check.clusterId)
    throw rejected("is not one of this cluster");
  if (ticket.audience !== check.audience) throw rejected("is for another server");
  if (!constantTimeEqual(ticket.doorKey, check.doorKey)) throw rejected("belongs to another door");
  const ageMs = check.wallMs - ticket.issuedMs;
  if (ageMs > TICKET_LIFE_MS || ageMs < -CLOCK_SKEW_MS) throw rejected("has expired");
  return ticket;
}

function fieldsOf(body: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(body, "base64url").toString("utf8"));
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function ticketOf(fields: Readonly<Record<string, unknown>>): Ticket | undefined {
  const { clusterId, username, issuer, subject, audience, doorKey, scope, credential, issuedMs } = fields;
  const texts = [clusterId, username, issuer, subject, audience, doorKey, credential];
  if (!texts.every((text) => typeof text === "string") || typeof issuedMs !== "number") return undefined;
  const { access, folderId, sharesUntilMs } = (scope ?? {}) as Partial<Record<string, unknown>>;
  if (access !== "read" && access !== "write") return undefined;
  if (folderId !== undefined && typeof folderId !== "string") return undefined;
  if (sharesUntilMs !== undefined && typeof sharesUntilMs !== "number") return undefined;
  return {
    clusterId: String(clusterId),
    username: String(username),
    issuer: String(issuer),
    subject: String(subject),
    audience: String(audience),
    doorKey: String(doorKey),
    scope: sharesUntilMs === undefined ? { access, folderId } : { access, folderId, sharesUntilMs },
    credential: String(credential),
    issuedMs,
  };
}

function rejected(what: string): GroveError {
  return new GroveError("TOKEN_REJECTED", `the ticket ${what}`);
}
