// How a door calls for a person: by tickets and over its own certificate, where a user's client has an ID token.
import type { LinkFacts, LinkVisit } from "#wire/proto/gen/grove/v1/file_server_pb.ts";

/** What a door puts in the place of a user's ID token. */
export interface DoorSide {
  /** A ticket for one FileServer. Rejects once the person's credential has ended. */
  ticketFor(fileServerId: string): Promise<string>;
  /** Metadata of calls to a MetaServer for the person. */
  routeMetadata(): Record<string, string>;
  /** Metadata that calls to a FileServer need beside the session's token. */
  callMetadata(): Record<string, string>;
  /** For a visitor by a link: what opens sessions in the place of tickets. */
  readonly link?: LinkSession;
}

/** A visitor's way to open sessions. */
export interface LinkSession {
  visit: Omit<LinkVisit, "$typeName" | "$unknown">;
  /** Called with what the server tells of the link. */
  opened(facts: LinkFacts | undefined): void;
}
