// Masks configured secrets in streamed output, also where a secret is split (D7, C-13).

/** Secrets that the mask looks for. */
const OUTPUT_SECRETS_MAX = 64;
/** Shorter secrets are ignored: they would mask half of every output. */
export const OUTPUT_SECRET_MIN_BYTES = 4;

const MASK = Buffer.from("[redacted]");

/** Masks one stream. A possible beginning of a secret is held back until the next bytes, or until `end`. */
export class OutputMask {
  readonly #secrets: readonly Buffer[];
  #held: Buffer = Buffer.alloc(0);

  /** Ignores secrets under OUTPUT_SECRET_MIN_BYTES, and those beyond OUTPUT_SECRETS_MAX. */
  constructor(secrets: readonly string[]) {
    this.#secrets = [...new Set(secrets)]
      .map((secret) => Buffer.from(secret))
      .filter((secret) => secret.length >= OUTPUT_SECRET_MIN_BYTES)
      // Of two secrets at the same byte the longer one wins.
      .sort((a, b) => b.length - a.length)
      .slice(0, OUTPUT_SECRETS_MAX);
  }

  /** Returns the output that is safe to show. */
  push(bytes: Buffer): Buffer {
    if (this.#secrets.length === 0) return bytes;
    const rest = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    return this.#mask(rest, (tail) => this.#beginning(tail));
  }

  /** Returns the held back rest. */
  end(): Buffer {
    return this.#mask(this.#held, () => 0);
  }

  #mask(bytes: Buffer, heldBytes: (rest: Buffer) => number): Buffer {
    let rest = bytes;
    const pieces: Buffer[] = [];
    const openBytes = heldBytes(rest);
    for (let found = this.#first(rest); found !== undefined; found = this.#first(rest)) {
      // A longer secret may begin at or before this place and is still incomplete.
      if (found.at >= rest.length - openBytes) break;
      pieces.push(rest.subarray(0, found.at), MASK);
      rest = rest.subarray(found.at + found.length);
    }
    const heldFrom = rest.length - heldBytes(rest);
    pieces.push(rest.subarray(0, heldFrom));
    // A copy, since a slice would keep the whole buffer alive.
    this.#held = Buffer.from(rest.subarray(heldFrom));
    return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces);
  }

  #first(bytes: Buffer): { readonly at: number; readonly length: number } | undefined {
    let first: { at: number; length: number } | undefined;
    for (const secret of this.#secrets) {
      const at = bytes.indexOf(secret);
      if (at >= 0 && (first === undefined || at < first.at)) first = { at, length: secret.length };
    }
    return first;
  }

  /** Length of the longest end of the bytes that begins a secret. */
  #beginning(bytes: Buffer): number {
    let longest = 0;
    for (const secret of this.#secrets) {
      for (let length = Math.min(secret.length - 1, bytes.length); length > longest; length--) {
        if (bytes.subarray(bytes.length - length).equals(secret.subarray(0, length))) longest = length;
      }
    }
    return longest;
  }
}

/** A copy of the value with the secrets masked in every text. */
export function masked<T>(value: T, secrets: readonly string[]): T {
  if (secrets.length === 0) return value;
  const within = (each: unknown): unknown => {
    if (typeof each === "string") {
      const mask = new OutputMask(secrets);
      return Buffer.concat([mask.push(Buffer.from(each)), mask.end()]).toString("utf8");
    }
    if (Array.isArray(each)) return each.map(within);
    if (typeof each !== "object" || each === null) return each;
    return Object.fromEntries(Object.entries(each).map(([name, member]) => [name, within(member)]));
  };
  return within(value) as T;
}
