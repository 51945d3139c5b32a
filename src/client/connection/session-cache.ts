// Stores the ID token until it expires and one session token for each FileServer, in 0600 files.
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { withProcessLock } from "#client/signin/process-lock.ts";
import { readStored, writeStored } from "#client/signin/stored-json.ts";
import { removePrivateFile } from "#os/private-file.ts";

/** The ID token and its user. */
export interface StoredIdentity {
  readonly username: string;
  /** Undefined when it was not to be stored (decision D23): it lived in one process only. */
  readonly idToken: string | undefined;
  /** Wall time of the token's `exp`; undefined for one that names none, which only mock tokens do. */
  readonly expiresAtMs: number | undefined;
}

/** A session with one FileServer. */
export interface StoredSession {
  /** host:port of the FileServer. */
  readonly address: string;
  readonly token: string;
  readonly username: string;
  readonly rootId: string;
  readonly expiresAtMs: number;
  /** The IP family that the session was opened with: the server ties it to one address (decision T22). */
  readonly family: 4 | 6 | undefined;
}

const IDENTITY_FILE = "identity.json";
const SESSION_PREFIX = "session-";

/** Where sessions with FileServers are kept between calls. */
export type KeptSessions = Pick<
  SessionCache,
  "readSession" | "writeSession" | "removeSession" | "replacedToken" | "whileOpening"
>;

/** The folder of credentials. */
export class SessionCache {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The signed-in identity; undefined without one. */
  async readIdentity(): Promise<StoredIdentity | undefined> {
    const fields = await readStored(join(this.#folder, IDENTITY_FILE));
    const username = fields?.text("username");
    if (fields === undefined || username === undefined) return undefined;
    return { username, idToken: fields.text("id_token"), expiresAtMs: fields.integer("expires_at_ms") };
  }

  /** Keeps an identity. */
  async writeIdentity(identity: StoredIdentity): Promise<void> {
    await writeStored(join(this.#folder, IDENTITY_FILE), {
      username: identity.username,
      id_token: identity.idToken,
      expires_at_ms: identity.expiresAtMs,
    });
  }

  /**
   * The session with a FileServer, undefined without one. Only the server knows whether it is still valid.
   */
  async readSession(address: string): Promise<StoredSession | undefined> {
    const fields = await readStored(this.#sessionPath(address));
    const token = fields?.text("session_token");
    const username = fields?.text("username");
    const expiresAtMs = fields?.integer("expires_at_ms");
    if (fields === undefined || token === undefined || username === undefined || expiresAtMs === undefined) {
      return undefined;
    }
    if (fields.text("address") !== address) return undefined;
    const family = fields.integer("family");
    return {
      address,
      token,
      username,
      rootId: fields.text("root_id") ?? "",
      expiresAtMs,
      family: family === 4 || family === 6 ? family : undefined,
    };
  }

  /** Token of the session that a new one at that address replaces; it ends once the new one exists. */
  async replacedToken(_address: string): Promise<string> {
    return "";
  }

  /** Keeps a session. */
  async writeSession(session: StoredSession): Promise<void> {
    await writeStored(this.#sessionPath(session.address), {
      address: session.address,
      session_token: session.token,
      username: session.username,
      root_id: session.rootId,
      expires_at_ms: session.expiresAtMs,
      family: session.family,
    });
  }

  /** Forgets the session with a FileServer. */
  async removeSession(address: string): Promise<void> {
    await removePrivateFile(this.#sessionPath(address));
  }

  /** Runs an action that opens a session with a FileServer, under a lock of this user. */
  whileOpening<T>(address: string, action: () => Promise<T>): Promise<T> {
    return withProcessLock(this.#sessionPath(address).replace(/json$/, "lock"), action);
  }

  /** All sessions that are kept. */
  async listSessions(): Promise<StoredSession[]> {
    const sessions: StoredSession[] = [];
    for (const name of await this.#names()) {
      if (!name.startsWith(SESSION_PREFIX)) continue;
      const address = decodeURIComponent(name.slice(SESSION_PREFIX.length, -".json".length));
      const session = await this.readSession(address);
      if (session !== undefined) sessions.push(session);
    }
    return sessions;
  }

  /** Forgets everything. */
  async clear(): Promise<void> {
    for (const name of await this.#names()) await removePrivateFile(join(this.#folder, name));
  }

  async #names(): Promise<string[]> {
    try {
      return (await readdir(this.#folder)).filter((name) =>
        /^(?:identity|session-[\w.%-]+)\.json$/.test(name),
      );
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw error;
    }
  }

  /** Callers check addresses first, so a file name holds only letters, digits, `.`, `-` and `%`. */
  #sessionPath(address: string): string {
    return join(this.#folder, `${SESSION_PREFIX}${encodeURIComponent(address)}.json`);
  }
}
