// What the HTTP side of a door needs to know of people, as an interface.
import type { DavTree } from "#door/webdav/resource.ts";
import type { BasicCredentials } from "./basic-credentials.ts";

/** Somebody who has signed in. */
export interface DoorPerson {
  readonly username: string;
  /** Their files, as far as their credentials reach. */
  readonly tree: DavTree;
  /** Called once, when the request has ended. */
  release(): void;
}

/** Tells who somebody is. */
export interface DoorPeople {
  /** Throws TOKEN_REJECTED for credentials that are wrong, and others where nothing can be said of them. */
  signIn(credentials: BasicCredentials, address: string): Promise<DoorPerson>;
}
