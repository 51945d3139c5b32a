// The metadata store's interface about what people sign in with at doors: app passwords, and their end.

/** An app password, without its secret. Times are wall times in unix milliseconds. */
export interface AppPasswordRecord {
  /** Public part of the password: twelve letters. */
  readonly id: string;
  readonly owner: string;
  /** The person who made it; empty in mock mode. */
  readonly issuer: string;
  readonly subject: string;
  /** The owner's word for it, unique among theirs. */
  readonly name: string;
  /** SHA-256 of the whole password, in hex. */
  readonly hash: string;
  readonly readOnly: boolean;
  /** Id of the folder of the owner's root below which it holds; empty for the whole. */
  readonly folderId: string;
  /** Path of that folder at the making, for lists. */
  readonly folderPath: string;
  readonly createdMs: number;
  /** 0 for one without an end. */
  readonly endsMs: number;
  /** Last use at any door, exact to five minutes; 0 for none. */
  readonly lastUsedMs: number;
  /** Last use at each of the doors where it was used last. */
  readonly doors: Readonly<Record<string, number>>;
}

/** A browser's session at doors, without its secret. Times are wall times in unix milliseconds. */
export interface DoorSessionRecord {
  /** Public part of the secret. */
  readonly id: string;
  readonly owner: string;
  /** The person who signed in; empty in mock mode. */
  readonly issuer: string;
  readonly subject: string;
  /** SHA-256 of the whole secret, in hex. */
  readonly hash: string;
  /** The moment of the sign-in. */
  readonly createdMs: number;
  /** Network address from which it began, as the door tells it; undefined for one from before this was kept. */
  readonly address?: string;
  /** Such as "Firefox 145 on Linux"; undefined for one from before this was kept. */
  readonly browser?: string;
  readonly endsMs: number;
  /** Last use at any door, exact to five minutes; 0 for none. */
  readonly lastUsedMs: number;
  /** Last use at each of the doors where it was used last. */
  readonly doors: Readonly<Record<string, number>>;
}

/** The end of a credential, or of a user's older sessions. */
export interface EndedCredential {
  /** Such as "app:…", or the name of `endsOfUser` for all that doors opened for a user before this wall time. */
  readonly credential: string;
  readonly atMs: number;
  /** Whose it was; absent in ends that a MetaServer of an older version listed. */
  readonly owner?: string;
}

/** The credentials that were revoked lately, for FileServers. */
export interface Revocations {
  /** Each with the wall time of its end. */
  readonly credentials: readonly EndedCredential[];
  /** All that doors opened before this wall time has ended: more was revoked at once than is listed. */
  readonly allBeforeMs: number;
}

/** The store's commands about credentials of doors. Registrations of FileServers do not restore them. */
export interface CredentialStore {
  /**
   * Keeps a new app password. Throws BAD_ARGUMENT for a name that the owner uses, OVERLOADED beyond 50, RATE_LIMITED
   * for who has ended 100 of them in two hours.
   */
  addAppPassword(record: AppPasswordRecord): Promise<void>;

  /** A user's app passwords, the oldest first, ended ones included. */
  appPasswordsOf(owner: string): Promise<AppPasswordRecord[]>;

  /** An app password by its id; undefined for none. */
  findAppPassword(id: string): Promise<AppPasswordRecord | undefined>;

  /** Notes a use at a door. */
  noteAppPasswordUse(id: string, door: string, wallMs: number): Promise<void>;

  /** Ends a user's app password by id or name; returns it, or undefined when there was none. */
  revokeAppPassword(owner: string, which: string, wallMs: number): Promise<AppPasswordRecord | undefined>;

  /**
   * Keeps a new browser's session; one too many ends the oldest. Throws TOKEN_REJECTED for an id that was used,
   * RATE_LIMITED for a person whose sessions ended a hundred times in ten minutes.
   */
  addDoorSession(record: DoorSessionRecord): Promise<void>;

  /** A browser's session by its id; undefined for none. */
  findDoorSession(id: string): Promise<DoorSessionRecord | undefined>;

  /** Notes a use of a browser's session at a door. */
  noteDoorSessionUse(id: string, door: string, wallMs: number): Promise<void>;

  /** A user's sessions of browsers, at most 20, the oldest first, ended ones included. */
  doorSessionsOf(owner: string): Promise<DoorSessionRecord[]>;

  /** Ends these sessions of a user, or all of them without ids; returns those that ended. */
  endDoorSessions(
    owner: string,
    ids: readonly string[] | undefined,
    wallMs: number,
  ): Promise<DoorSessionRecord[]>;

  /** Ends all app passwords and browsers' sessions used at a door since a wall time, and returns the former. */
  revokeUsedAtDoor(door: string, sinceMs: number, wallMs: number): Promise<AppPasswordRecord[]>;

  /** What was revoked in the last two hours. */
  revocations(): Promise<Revocations>;
}
