// One-time tokens for a new node's first certificate (D20): made here, stored hashed, used once.
import { createHash, randomBytes } from "node:crypto";
import { readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { constantTimeEqual } from "#base/constant-time.ts";
import { GroveError } from "#base/errors.ts";
import { JOIN_TOKEN_LIFETIME_MAX_MS } from "#base/limits.ts";
import { checkedNodeId } from "#base/node-id.ts";
import { OwnedFolder } from "#os/folder-owner.ts";

/** Unused join tokens at a time. */
export const JOIN_TOKENS_MAX = 1_000;

const FORM = /^gjt_([0-9a-f]{16})\.([A-Za-z0-9_-]{43})\.([0-9a-f]{64})(?:\.([a-z0-9-]{1,63}))?$/;
const FILE = /^([0-9a-f]{16})\.(json|used)$/;
/** Characters of the longest token. */
const TOKEN_MAX_LENGTH = 256;
const NO_HASH = Buffer.alloc(32);

/** A parsed token. */
export interface JoinToken {
  /** Id of the token; no secret. */
  readonly selector: string;
  readonly secret: string;
  /** SHA-256 of the authority's certificate in hex, by which the node recognises the server. */
  readonly fingerprint: string;
  /** The only node that may use it; undefined when the node chooses. */
  readonly id: string | undefined;
}

/** A token on record. */
interface StoredToken {
  readonly schema: 1;
  readonly secret_sha256: string;
  readonly id: string | null;
  /** The only names and addresses allowed in the certificate; null: the node chooses. */
  readonly hosts: readonly string[] | null;
  readonly ends_unix_ms: number;
}

/** The rights of a token's bearer. */
export interface Grant {
  /** The only node that may use it; undefined when the node chooses. */
  readonly id: string | undefined;
  /** The only names and addresses for the certificate, in lower case; undefined when the node chooses. */
  readonly hosts: readonly string[] | undefined;
}

/** Parses a token. Throws BAD_ARGUMENT without any part of it. */
export function parseJoinToken(text: string): JoinToken {
  const match = text.length > TOKEN_MAX_LENGTH ? null : FORM.exec(text.trim());
  const [, selector, secret, fingerprint, id] = match ?? [];
  if (selector === undefined || secret === undefined || fingerprint === undefined) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "that is no join token: 'grove node token' on the MetaServer's host makes one",
    );
  }
  return { selector, secret, fingerprint, id };
}

/** The tokens of an authority, in a folder of its own beside the key. */
export class JoinTokens {
  readonly #folder: OwnedFolder;
  readonly #clock: Pick<Clock, "wallMs">;

  constructor(authorityFolder: string, clock: Pick<Clock, "wallMs">) {
    this.#folder = new OwnedFolder(join(authorityFolder, "tokens"), FILE);
    this.#clock = clock;
  }

  /**
   * Makes a token for lifetimeMs (at most a week), for one node id and the given hosts. Only its hash is
   * kept. One that root makes can be read by the authority's owner, as which the MetaServer runs.
   */
  async make(order: {
    readonly fingerprint: string;
    readonly id: string | undefined;
    readonly hosts?: readonly string[] | undefined;
    readonly lifetimeMs: number;
  }): Promise<string> {
    if (!(order.lifetimeMs > 0 && order.lifetimeMs <= JOIN_TOKEN_LIFETIME_MAX_MS)) {
      throw new GroveError("BAD_ARGUMENT", "a join token lives for at most a week");
    }
    const id = order.id === undefined ? undefined : checkedNodeId(order.id);
    await this.#forgetEnded();
    if ((await this.#folder.names()).length >= JOIN_TOKENS_MAX) {
      throw new GroveError("OVERLOADED", `${JOIN_TOKENS_MAX} join tokens wait to be used already`);
    }
    const selector = randomBytes(8).toString("hex");
    const secret = randomBytes(32).toString("base64url");
    const stored: StoredToken = {
      schema: 1,
      secret_sha256: hashOf(secret).toString("hex"),
      id: id ?? null,
      hosts: order.hosts?.map((host) => host.toLowerCase()) ?? null,
      ends_unix_ms: Math.trunc(this.#clock.wallMs() + order.lifetimeMs),
    };
    await this.#folder.create(`${selector}.json`, `${JSON.stringify(stored)}\n`);
    return `gjt_${selector}.${secret}.${order.fingerprint}${id === undefined ? "" : `.${id}`}`;
  }

  /**
   * Checks that a token is on record, in time and unused, and returns its rights. It stays valid until `use`.
   * Throws TOKEN_REJECTED with the same text for every reason; the comparison takes the same time for every
   * secret.
   */
  async check(token: Pick<JoinToken, "selector" | "secret">): Promise<Grant> {
    const stored = await this.#read(token.selector);
    const expected = stored === undefined ? NO_HASH : Buffer.from(stored.secret_sha256, "hex");
    const isEqual = constantTimeEqual(hashOf(token.secret), expected);
    if (stored === undefined || !isEqual || stored.ends_unix_ms <= this.#clock.wallMs()) throw rejected();
    return { id: stored.id ?? undefined, hosts: stored.hosts ?? undefined };
  }

  /**
   * Uses a token up. Of several concurrent calls, in any process, one resolves and the others throw
   * TOKEN_REJECTED.
   */
  async use(token: Pick<JoinToken, "selector">): Promise<void> {
    const used = `${token.selector}.used`;
    try {
      // Only one rename of a file succeeds.
      await rename(this.#folder.pathOf(`${token.selector}.json`), this.#folder.pathOf(used));
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === "ENOENT") throw rejected();
      throw cause;
    }
    await this.#folder.remove(used);
  }

  async #read(selector: string): Promise<StoredToken | undefined> {
    try {
      const stored = JSON.parse(
        await readFile(this.#folder.pathOf(`${selector}.json`), "utf8"),
      ) as Partial<StoredToken>;
      const { secret_sha256: hash, id = null, hosts = null, ends_unix_ms: endsMs, schema } = stored;
      if (schema !== 1 || typeof endsMs !== "number" || typeof hash !== "string") return undefined;
      if (!/^[0-9a-f]{64}$/.test(hash) || (id !== null && typeof id !== "string")) return undefined;
      if (hosts !== null && !(Array.isArray(hosts) && hosts.every((host) => typeof host === "string"))) {
        return undefined;
      }
      return { schema, secret_sha256: hash, id, hosts, ends_unix_ms: endsMs };
    } catch {
      // Unknown, used, or damaged: the caller sees no difference.
      return undefined;
    }
  }

  async #forgetEnded(): Promise<void> {
    for (const name of await this.#folder.names()) {
      const [, selector = "", kind] = FILE.exec(name) ?? [];
      const stored = kind === "json" ? await this.#read(selector) : undefined;
      if (stored === undefined || stored.ends_unix_ms <= this.#clock.wallMs()) {
        await this.#folder.remove(name);
      }
    }
  }
}

function hashOf(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}

function rejected(): GroveError {
  return new GroveError("TOKEN_REJECTED", "the join token is unknown, used already, or has expired");
}
