// Call metadata: custom headers and trailers, text or binary, checked before sending.

const NAME = /^[0-9a-z_.-]+$/;
const TEXT_VALUE = /^[\x20-\x7e]*$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Headers of the protocol itself; callers can neither set nor read them as metadata. */
const RESERVED = new Set([
  "connection",
  "content-length",
  "content-type",
  "host",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

const isReserved = (name: string): boolean =>
  name.charCodeAt(0) === 0x3a || name.startsWith("grpc-") || RESERVED.has(name);

const checkedName = (name: string): string => {
  const lower = name.toLowerCase();
  if (!NAME.test(lower) || isReserved(lower))
    throw new TypeError(`not a metadata name: ${JSON.stringify(name)}`);
  return lower;
};

const wireValue = (name: string, value: string | Uint8Array): string => {
  if (name.endsWith("-bin")) {
    if (typeof value === "string") throw new TypeError(`metadata ${name} takes bytes`);
    // Unpadded, as the protocol requires of a sender.
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
      .toString("base64")
      .replace(/=+$/, "");
  }
  if (typeof value !== "string")
    throw new TypeError(`metadata ${name} takes text; bytes need a name in -bin`);
  // The message omits the value: it may be a token.
  if (!TEXT_VALUE.test(value))
    throw new TypeError(`metadata ${name} has a character outside printable ASCII`);
  return value;
};

/** Metadata in literal form: a name, and one or several values (bytes for names that end in -bin). */
export type MetadataInit = Readonly<Record<string, string | Uint8Array | readonly (string | Uint8Array)[]>>;

/**
 * An ordered multimap. Names are lower-cased; a bad name or value throws TypeError without quoting the value.
 */
export class Metadata {
  /** Name, value, name, value, …: with few entries a linear search costs less than a map. */
  #flat: readonly string[] = [];
  /** True for received headers, which other owners may share and which include the protocol's own. */
  #isRaw = false;

  constructor(init?: MetadataInit | Metadata) {
    if (init === undefined) return;
    if (init instanceof Metadata) {
      this.#flat = init.#isRaw ? init.#flat : init.#flat.slice();
      this.#isRaw = init.#isRaw;
      return;
    }
    for (const name of Object.keys(init)) {
      const value = init[name] as MetadataInit[string];
      if (typeof value === "string" || value instanceof Uint8Array) this.append(name, value);
      else for (const one of value) this.append(name, one);
    }
  }

  /** Metadata from received HTTP/2 headers (name, value, name, value, …), without the protocol's own. */
  static fromRaw(raw: readonly string[]): Metadata {
    const metadata = new Metadata();
    metadata.#flat = raw;
    metadata.#isRaw = true;
    return metadata;
  }

  /** True without entries. */
  get isEmpty(): boolean {
    return this.#own().length === 0;
  }

  /** The first text value, or undefined. */
  get(name: string): string | undefined {
    const lower = name.toLowerCase();
    const flat = this.#flat;
    for (let i = 0; i + 1 < flat.length; i += 2) {
      if (flat[i] === lower) return this.#isRaw && isReserved(lower) ? undefined : flat[i + 1];
    }
    return undefined;
  }

  /**
   * The first value of a -bin name, decoded; undefined when absent or not base64 (both paddings are read).
   */
  getBinary(name: string): Uint8Array | undefined {
    const text = this.get(name)?.split(",", 1)[0]?.trim();
    return text !== undefined && BASE64.test(text) ? Buffer.from(text, "base64") : undefined;
  }

  /** Every value of a name in its wire form (base64 for -bin names), in order. */
  getAll(name: string): readonly string[] {
    const lower = name.toLowerCase();
    const values: string[] = [];
    for (const [one, value] of this.entries()) if (one === lower) values.push(value);
    return values;
  }

  /** Replaces all values of a name. */
  set(name: string, value: string | Uint8Array): void {
    const checked = checkedName(name);
    const wire = wireValue(checked, value);
    this.delete(checked);
    this.#own().push(checked, wire);
  }

  /** Adds a value to a name. */
  append(name: string, value: string | Uint8Array): void {
    const checked = checkedName(name);
    this.#own().push(checked, wireValue(checked, value));
  }

  /** Removes a name with all its values. */
  delete(name: string): void {
    const lower = name.toLowerCase();
    const own = this.#own();
    for (let i = own.length - 2; i >= 0; i -= 2) if (own[i] === lower) own.splice(i, 2);
  }

  /** Names and values as they are on the wire, a pair for each value. */
  *entries(): IterableIterator<[string, string]> {
    const own = this.#own();
    for (let i = 0; i + 1 < own.length; i += 2) yield [own[i] as string, own[i + 1] as string];
  }

  /** Appends all entries to a flat header list in node:http2's form. */
  appendTo(raw: string[]): void {
    for (const text of this.#own()) raw.push(text);
  }

  /** The list in a copy of its own, without the protocol's own headers. */
  #own(): string[] {
    if (this.#isRaw) {
      const own: string[] = [];
      const raw = this.#flat;
      for (let i = 0; i + 1 < raw.length; i += 2) {
        if (!isReserved(raw[i] as string)) own.push(raw[i] as string, raw[i + 1] as string);
      }
      this.#flat = own;
      this.#isRaw = false;
    }
    return this.#flat as string[];
  }
}
