// Passwords of links: hashed slowly, since people choose them, in few places of their own; and proofs of one.
import { argon2, createHmac, randomBytes } from "node:crypto";
import { constantTimeEqual } from "#base/constant-time.ts";
import { GroveError } from "#base/errors.ts";

/** Hashes at once, and those that may wait; apart from those of the administrator's password. */
const PLACES = { running: 2, waiting: 32, perParty: 4 } as const;
/** As OWASP recommends for Argon2id: 19 MiB, two passes, one lane. */
const COST = { memory: 19_456, passes: 2, parallelism: 1, tagLength: 32 } as const;
const FORM = /^\$argon2id\$v=19\$m=19456,t=2,p=1\$([A-Za-z0-9+/]{22})\$([A-Za-z0-9+/]{43})$/u;

/** How long a visitor need not give the password again. */
export const LINK_PASS_MS = 43_200_000;

/** Hashes and verifies passwords of links. */
export class LinkPasswords {
  #running = 0;
  readonly #waiting: (() => void)[] = [];
  readonly #held = new Map<string, number>();

  /** An Argon2id text. Throws RATE_LIMITED where too many wait. `party`: whose share of the places it takes. */
  async hash(password: string, party: string): Promise<string> {
    const nonce = randomBytes(16);
    const tag = await this.#derive(password, nonce, party);
    const bare = (bytes: Buffer): string => bytes.toString("base64").replaceAll("=", "");
    return `$argon2id$v=19$m=${COST.memory},t=${COST.passes},p=${COST.parallelism}$${bare(nonce)}$${bare(tag)}`;
  }

  /** True for the password of an Argon2id text. Throws RATE_LIMITED like hash. */
  async verify(password: string, text: string, party: string): Promise<boolean> {
    const [, nonce, tag] = FORM.exec(text) ?? [];
    if (nonce === undefined || tag === undefined) return false;
    const derived = await this.#derive(password, Buffer.from(nonce, "base64"), party);
    return constantTimeEqual(derived, Buffer.from(tag, "base64"));
  }

  async #derive(password: string, nonce: Buffer, party: string): Promise<Buffer> {
    const held = this.#held.get(party) ?? 0;
    const isFull = this.#running >= PLACES.running && this.#waiting.length >= PLACES.waiting;
    if (held >= PLACES.perParty || isFull) {
      throw new GroveError("RATE_LIMITED", "too many passwords are being checked; try again in a moment", {
        metadata: { retry_after_ms: "1000" },
      });
    }
    this.#held.set(party, held + 1);
    try {
      // A finished one passes its place on, so the count stays.
      if (this.#running < PLACES.running) this.#running++;
      else await new Promise<void>((resolve) => this.#waiting.push(resolve));
      try {
        return await argon2id(password, nonce);
      } finally {
        const next = this.#waiting.shift();
        if (next === undefined) this.#running--;
        else next();
      }
    } finally {
      const left = (this.#held.get(party) ?? 1) - 1;
      if (left === 0) this.#held.delete(party);
      else this.#held.set(party, left);
    }
  }
}

/** What proves until then that a visitor gave the password: `<milliseconds>.<HMAC>`. */
export function makePass(passKey: string, visitor: string, endsMs: number): string {
  return `${endsMs}.${macOf(passKey, visitor, endsMs)}`;
}

/** True for a pass of this visitor that has not ended. */
export function isPass(text: string, passKey: string, visitor: string, nowMs: number): boolean {
  const [, ends = "", mac = ""] = /^(\d{1,15})\.([A-Za-z0-9_-]{43})$/u.exec(text) ?? [];
  if (ends === "" || Number(ends) <= nowMs || Number(ends) > nowMs + 2 * LINK_PASS_MS) return false;
  return constantTimeEqual(mac, macOf(passKey, visitor, Number(ends)));
}

function macOf(passKey: string, visitor: string, endsMs: number): string {
  return createHmac("sha256", Buffer.from(passKey, "hex"))
    .update(`grove link pass 1\0${visitor}\0${endsMs}`)
    .digest("base64url");
}

/** Runs in the thread pool, off the event loop. */
function argon2id(message: string, nonce: Buffer): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  argon2("argon2id", { message: message.normalize("NFC"), nonce, ...COST }, (error, derived) => {
    if (error === null) resolve(derived);
    else reject(error);
  });
  return promise;
}
