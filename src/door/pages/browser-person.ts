// Somebody who is signed in with a browser, as the pages' interface needs them.
import type { Cluster } from "#client/connection/cluster.ts";
import type { DoorPerson } from "#door/http/door-people.ts";
import type { OwnAppPasswords, OwnSessions } from "#door/people/people.ts";
import type { SharedRoot } from "#door/tree/person.ts";

/** A signed-in person with a way to the cluster. */
export interface BrowserPerson extends DoorPerson {
  readonly cluster: Cluster;
  sharedRoots(): Promise<readonly SharedRoot[]>;
  /** Wall time until which the sign-in is recent enough to share. */
  readonly recentUntilMs: number;
  readonly appPasswords: OwnAppPasswords;
  readonly sessions: OwnSessions;
}

/** Recognises people by the cookies of their browsers. */
export interface BrowserPeople {
  /** Throws TOKEN_REJECTED for a session that has ended, and others where nothing can be said of it. */
  bySession(secret: string, address: string): Promise<BrowserPerson>;
}
