// Takes configured secrets out of output as it streams by, also where a secret comes in two pieces (D7, C-13).

/** Secrets that are looked for in the output of actions. */
const OUTPUT_SECRETS_MAX = 64;
/** Shorter ones are not looked for: they would mask half of every output. */
export const OUTPUT_SECRET_MIN_BYTES = 4;

const MASK = Buffer.from("[redacted]");

/** Masks one stream. What could be the beginning of a secret is held back until the next bytes tell, or until `end`. */
export class OutputMask {
  readonly #secrets: readonly Buffer[];
  #held: Buffer = Buffer.alloc(0);

  /** Secrets under OUTPUT_SECRET_MIN_BYTES, and those beyond OUTPUT_SECRETS_MAX, are not looked for. */
  constructor(secrets: readonly string[]) {
    this.#secrets = [...new Set(secrets)]
      .map((secret) => Buffer.from(secret))
      .filter((secret) => secret.length >= OUTPUT_SECRET_MIN_BYTES)
      // Where two begin at the same byte the longer one is meant.
      .sort((a, b) => b.length - a.length)
      .slice(0, OUTPUT_SECRETS_MAX);
  }

  /** What may be shown now. */
  push(bytes: Buffer): Buffer {
    if (this.#secrets.length === 0) return bytes;
    const rest = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    return this.#mask(rest, (tail) => this.#beginning(tail));
  }

  /** What was held back; nothing follows it. */
  end(): Buffer {
    return this.#mask(this.#held, () => 0);
  }

  #mask(bytes: Buffer, heldBytes: (rest: Buffer) => number): Buffer {
    let rest = bytes;
    const pieces: Buffer[] = [];
    const openBytes = heldBytes(rest);
    for (let found = this.#first(rest); found !== undefined; found = this.#first(rest)) {
      // A longer one may begin there, or before, that has not come to its end.
      if (found.at >= rest.length - openBytes) break;
      pieces.push(rest.subarray(0, found.at), MASK);
      rest = rest.subarray(found.at + found.length);
    }
    const heldFrom = rest.length - heldBytes(rest);
    pieces.push(rest.subarray(0, heldFrom));
    // A copy: the piece would keep the whole buffer that it was read into.
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

  /** Bytes at the end that are the beginning of a secret, at most. */
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

/** The same value, with the secrets taken out of every text in it. */
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
