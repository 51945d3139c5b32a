// The object that names the one database whose servers may remove chunks below a prefix.
import { GroveError } from "#base/errors.ts";
import { crc32 } from "#os/crc32.ts";
import { bytesBody } from "./s3-client.ts";
import { StoreError } from "./store-error.ts";
import type { StoreRequests } from "./store-requests.ts";

const INCARNATION = /^[0-9A-Za-z-]{1,64}$/;

/** The marker of one prefix. */
export class StoreMarker {
  readonly #requests: StoreRequests;
  readonly #key: string;

  constructor(requests: StoreRequests, prefix: string) {
    this.#requests = requests;
    this.#key = `${prefix}grove-incarnation.json`;
  }

  /** The incarnation that the marker names; undefined without a marker. Throws BAD_ARGUMENT for a foreign one. */
  async incarnation(): Promise<string | undefined> {
    const text = await this.#requests.textOf(this.#key);
    if (text === undefined) return undefined;
    try {
      const { incarnation } = JSON.parse(text) as { incarnation?: unknown };
      if (typeof incarnation === "string" && INCARNATION.test(incarnation)) return incarnation;
    } catch {
      // Refused below.
    }
    throw new GroveError("BAD_ARGUMENT", `the object ${this.#key} in the bucket is no marker of Grove`);
  }

  /**
   * Puts the marker where there is none. Returns the incarnation that it names then: another one means that
   * this database is a copy, or that the prefix belongs to another cluster.
   */
  async claim(incarnation: string): Promise<string> {
    const known = await this.incarnation();
    if (known !== undefined) return known;
    const bytes = Buffer.from(`${JSON.stringify({ schema: 1, incarnation })}\n`);
    const body = bytesBody([bytes], bytes.length);
    await this.#requests.putNew(this.#key, body, crc32(bytes)).catch(() => undefined);
    // Two may have asked at once, and a store may ignore conditions: what is there now counts.
    const now = await this.incarnation();
    if (now === undefined) throw new GroveError("STORE_UNAVAILABLE", "the object store keeps no marker");
    return now;
  }

  /**
   * Throws BAD_ARGUMENT unless the prefix is this database's. One that is nobody's becomes its own, unless its
   * chunks must lie there already.
   */
  async own(incarnation: string, hasChunks: boolean): Promise<void> {
    if (hasChunks && (await this.incarnation()) === undefined) {
      throw new GroveError(
        "BAD_ARGUMENT",
        "this bucket and prefix hold nothing of the database, which has chunks: name those that it was used with. " +
          "If what was there is lost for good, grove fsck -list -restored lets the database begin here",
      );
    }
    if ((await this.claim(incarnation)) !== incarnation) {
      throw new GroveError(
        "BAD_ARGUMENT",
        "this bucket and prefix belong to another database, of which this one may be a copy: name another prefix",
      );
    }
  }

  /** Throws STORE_UNAVAILABLE where there is no marker either: then no chunk is lost, and all content is away. */
  async requireThere(): Promise<void> {
    if ((await this.incarnation()) !== undefined) return;
    const text =
      "the object store has nothing of the shared engine: see that its disk and its bucket are there";
    throw new StoreError("refused", text);
  }

  /** Names another incarnation; an operator decides that after a restore. */
  async replace(incarnation: string): Promise<void> {
    const bytes = Buffer.from(`${JSON.stringify({ schema: 1, incarnation })}\n`);
    const { client } = this.#requests;
    const put = (): Promise<void> =>
      client.put(this.#key, bytesBody([bytes], bytes.length), crc32(bytes), false);
    await this.#requests.retried("PUT", put);
  }

  /** Throws BAD_ARGUMENT unless this incarnation may remove chunks. */
  async require(incarnation: string): Promise<void> {
    const known = await this.incarnation();
    if (known === incarnation) return;
    const whose = known === undefined ? "there is no marker" : "the marker names another database";
    throw new GroveError(
      "BAD_ARGUMENT",
      `this database must not remove chunks of the bucket: ${whose}. A copy of a database needs a bucket or a prefix of its own`,
    );
  }
}
