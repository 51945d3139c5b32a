// What the HTTP side of a door needs to know of visitors by links, as an interface.
import type { ByteRange } from "#door/webdav/byte-ranges.ts";
import type { BytesTaker, DavResource } from "#door/webdav/resource.ts";

/** What a browser brings: from the link's address, and from earlier visits. */
export interface LinkKey {
  readonly token: string;
  /** Drawn by a door on the first visit. */
  readonly visitor: string;
  /** Proves that the visitor gave the password; empty for nothing. */
  readonly pass: string;
}

/** What a visitor is told of a link. */
export interface LinkFacts {
  readonly name: string;
  readonly isFolder: boolean;
  readonly isDrop: boolean;
  /** Unix milliseconds; 0 for no end. */
  readonly endsMs: number;
  /** To bring along next time; empty where no password is asked for. */
  readonly pass: string;
}

/** One page of a folder. */
export interface LinkListing {
  readonly entries: readonly (DavResource & { readonly name: string })[];
  /** Where the next page begins; empty on the last. */
  readonly next: string;
}

/** Somebody whose link opens something. */
export interface LinkVisitor {
  readonly facts: LinkFacts;
  /** Undefined where nothing is. Names are below what the link opens. */
  look(path: readonly string[]): Promise<DavResource | undefined>;
  list(path: readonly string[], after: string): Promise<LinkListing>;
  /** Bytes of that version of a file; counted before the first. */
  read(path: readonly string[], etag: string, range: ByteRange, take: BytesTaker): Promise<void>;
  drop(name: string, size: number, body: AsyncIterable<Uint8Array>): Promise<void>;
  /** Called once, when the request has ended. */
  release(): void;
}

/** Lets visitors in. */
export interface LinkVisitors {
  /**
   * Throws TOKEN_REJECTED, with "password", "wrong" or "ended" as link in its metadata; RATE_LIMITED; and others where
   * nothing can be said.
   */
  open(key: LinkKey & { readonly password?: string }, address: string): Promise<LinkVisitor>;
}
