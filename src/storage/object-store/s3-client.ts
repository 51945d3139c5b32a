// Plain S3: PUT with a checksum, GET of a range, HEAD, DELETE, DeleteObjects; each call is one request.
import { createHash, createHmac } from "node:crypto";
import type { LookupFunction } from "node:net";
import { SignatureV4 } from "@smithy/signature-v4";
import type { Clock } from "#base/clock.ts";
import type { StoreCredentials } from "./store-credentials.ts";
import { refusedBy, StoreError } from "./store-error.ts";
import {
  type Incoming,
  type Outgoing,
  type RequestBody,
  STORE_PATIENCE,
  StoreConnections,
  type StorePatience,
} from "./store-exchange.ts";
import type { StoreSettings } from "./store-settings.ts";
import { childText, xmlRoot, xmlText } from "./xml-answer.ts";

/** Keys of one DeleteObjects (S3's limit). */
export const DELETED_AT_ONCE = 1_000;
/** Bytes of the largest object that is read as a whole text. */
const TEXT_OBJECT_MAX_BYTES = 65_536;

/** What HEAD tells of an object. */
export interface ObjectFacts {
  readonly length: number;
  /** Undefined when the store tells no CRC-32. */
  readonly crc32: number | undefined;
  /** 0 when the store tells no time. */
  readonly modifiedMs: number;
  readonly etag: string;
}

/** An object in a listing. */
export interface ListedObject {
  readonly key: string;
  readonly length: number;
  /** 0 when the store tells no time. */
  readonly modifiedMs: number;
  readonly etag: string;
}

/** A page of a listing in the order of UTF-8 bytes. */
export interface ObjectPage {
  readonly objects: readonly ListedObject[];
  readonly isLast: boolean;
}

/** Dependencies of the client. */
export interface S3ClientDeps {
  readonly settings: StoreSettings;
  readonly credentials: { current(): Promise<StoreCredentials>; doubt(): void };
  /** PEM of the authority that alone is trusted; undefined for the system's. */
  readonly ca: string | undefined;
  readonly clock: Clock;
  readonly patience?: StorePatience;
  /** Finds addresses of hosts in place of the system. */
  readonly lookup?: LookupFunction;
}

interface Wanted {
  readonly method: "PUT" | "GET" | "HEAD" | "DELETE" | "POST";
  /** Undefined for the bucket itself. */
  readonly key: string | undefined;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: RequestBody | undefined;
  readonly answerBytes?: number;
  readonly sink?: ((piece: Buffer) => void) | undefined;
}

/** Every method throws StoreError, and sends its request once. */
export class S3Client {
  readonly #deps: S3ClientDeps;
  readonly #connections: StoreConnections;
  readonly #signer: SignatureV4;
  readonly #host: string;
  readonly #port: string;
  readonly #path: string;
  #skewMs: number | undefined;

  constructor(deps: S3ClientDeps) {
    this.#deps = deps;
    const { endpoint, bucket, addressing, region } = deps.settings;
    const { protocol, hostname, port } = new URL(endpoint);
    const { ca, clock, lookup, patience = STORE_PATIENCE } = deps;
    this.#connections = new StoreConnections({
      isSecure: protocol === "https:",
      ca,
      clock,
      patience,
      lookup,
    });
    this.#host = addressing === "path" ? hostname : `${bucket}.${hostname}`;
    this.#port = port;
    this.#path = addressing === "path" ? `/${bucket}/` : "/";
    this.#signer = new SignatureV4({
      service: "s3",
      region,
      credentials: () => deps.credentials.current(),
      sha256: Sha256,
      uriEscapePath: false,
      applyChecksum: false,
    });
  }

  /** The store's clock minus ours by its last answer; undefined before one, and where it tells no time. */
  get clockSkewMs(): number | undefined {
    return this.#skewMs;
  }

  /** Ends every request and connection. */
  close(): void {
    this.#connections.close();
  }

  /** Stores an object. With `isNew` the store refuses a name that it has: StoreError `taken`. */
  async put(key: string, body: RequestBody, crc32: number, isNew: boolean): Promise<void> {
    const headers = {
      "content-length": String(body.byteCount),
      "x-amz-checksum-crc32": crcText(crc32),
      "x-amz-sdk-checksum-algorithm": "CRC32",
      ...(isNew ? { "if-none-match": "*" } : {}),
    };
    const answer = await this.#send({ method: "PUT", key, headers, body });
    if (answer.status !== 200) throw this.#refusal("PUT", answer);
  }

  /** Gives the bytes of a range to the sink, in order. Throws `missing` when the object is shorter. */
  async get(key: string, start: number, length: number, sink: (piece: Buffer) => void): Promise<void> {
    let got = 0;
    const answer = await this.#send({
      method: "GET",
      key,
      headers: { range: `bytes=${start}-${start + length - 1}` },
      answerBytes: length,
      sink: (piece) => {
        got += piece.length;
        sink(piece);
      },
    });
    // A range that begins behind the end of the object is refused, one that ends there comes short.
    const isShort = answer.status === 416;
    const isWhole = answer.status === 206 || (answer.status === 200 && start === 0);
    if (!isWhole && !isShort) throw answer.status === 200 ? ignoredRange() : this.#refusal("GET", answer);
    if (isShort || got < length) throw new StoreError("missing", "an object is shorter than its row says");
  }

  /** Content of a small object. */
  async getText(key: string): Promise<string> {
    const answer = await this.#send({ method: "GET", key, answerBytes: TEXT_OBJECT_MAX_BYTES });
    if (answer.status !== 200) throw this.#refusal("GET", answer);
    return answer.text;
  }

  /** Length and checksum of an object. */
  async head(key: string): Promise<ObjectFacts> {
    const answer = await this.#send({ method: "HEAD", key, headers: { "x-amz-checksum-mode": "ENABLED" } });
    // Its answer has no code: only that to GET tells a missing object from a missing bucket.
    if (answer.status === 404) await this.get(key, 0, 1, () => undefined);
    if (answer.status !== 200) throw this.#refusal("HEAD", answer);
    const crc = answer.headers["x-amz-checksum-crc32"];
    return {
      length: Number(answer.headers["content-length"]),
      crc32: typeof crc === "string" ? crcOf(crc) : undefined,
      modifiedMs: timeOf(answer.headers["last-modified"] ?? ""),
      etag: answer.headers.etag ?? "",
    };
  }

  /** Removes an object; a missing one is no error. */
  async delete(key: string): Promise<void> {
    const answer = await this.#send({ method: "DELETE", key });
    if (answer.status !== 204 && answer.status !== 200 && answer.status !== 404) {
      throw this.#refusal("DELETE", answer);
    }
  }

  /**
   * Removes at most DELETED_AT_ONCE objects. Returns the keys that the store did not confirm, each with its
   * code; missing objects are confirmed.
   */
  async deleteMany(keys: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const objects = keys.map((key) => `<Object><Key>${xmlText(key)}</Key></Object>`).join("");
    const answer = await this.#send({
      method: "POST",
      key: undefined,
      query: { delete: "" },
      ...textBody(`<?xml version="1.0" encoding="UTF-8"?><Delete>${objects}</Delete>`),
    });
    const result = answer.status === 200 ? xmlRoot(answer.text) : undefined;
    if (result?.name !== "DeleteResult") throw this.#refusal("DeleteObjects", answer);
    const unconfirmed = new Map(keys.map((key) => [key, "unconfirmed"]));
    for (const child of result.children) {
      const key = childText(child, "Key");
      const code = childText(child, "Code");
      if (child.name === "Deleted" || code === "NoSuchKey") unconfirmed.delete(key);
      else if (child.name === "Error" && unconfirmed.has(key)) unconfirmed.set(key, code);
    }
    return unconfirmed;
  }

  /** One page of the objects below a prefix and after a key. Only a check lists. */
  async list(prefix: string, after: string): Promise<ObjectPage> {
    const query = { "list-type": "2", prefix, ...(after === "" ? {} : { "start-after": after }) };
    const answer = await this.#send({ method: "GET", key: undefined, query });
    const result = answer.status === 200 ? xmlRoot(answer.text) : undefined;
    if (result?.name !== "ListBucketResult") throw this.#refusal("ListObjects", answer);
    const objects = result.children
      .filter(({ name }) => name === "Contents")
      .map((each) => ({
        key: childText(each, "Key"),
        length: Number(childText(each, "Size")),
        modifiedMs: timeOf(childText(each, "LastModified")),
        etag: childText(each, "ETag"),
      }));
    return { objects, isLast: childText(result, "IsTruncated") !== "true" };
  }

  /** State of the bucket's versions as the store says it: Enabled, Suspended, or empty for never. */
  async versioning(): Promise<string> {
    const answer = await this.#send({ method: "GET", key: undefined, query: { versioning: "" } });
    if (answer.status === 501 || storeCode(answer) === "VersioningNotConfigured") return "";
    const result = answer.status === 200 ? xmlRoot(answer.text) : undefined;
    if (result?.name !== "VersioningConfiguration") throw this.#refusal("GetBucketVersioning", answer);
    return childText(result, "Status");
  }

  async #send(wanted: Wanted): Promise<Incoming> {
    const path = this.#path + encodedKey(wanted.key ?? "");
    // Without its last slash the bucket's own path is understood by every store.
    const own = wanted.key === undefined && path.length > 1 ? path.slice(0, -1) : path;
    const host = this.#port === "" ? this.#host : `${this.#host}:${this.#port}`;
    const signed = await this.#signer.sign({
      method: wanted.method,
      protocol: new URL(this.#deps.settings.endpoint).protocol,
      hostname: this.#host,
      path: own,
      query: { ...wanted.query },
      headers: { host, "x-amz-content-sha256": "UNSIGNED-PAYLOAD", ...wanted.headers },
    });
    const search = Object.entries(wanted.query ?? {})
      .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
      .join("&");
    const outgoing: Outgoing = {
      method: wanted.method,
      host: this.#host.replace(/^\[|\]$/g, ""),
      port: this.#port === "" ? undefined : Number(this.#port),
      path: search === "" ? own : `${own}?${search}`,
      headers: signed.headers,
      body: wanted.body,
      sink: wanted.sink,
      ...(wanted.answerBytes === undefined ? {} : { answerBytes: wanted.answerBytes }),
    };
    const answer = await this.#connections.exchange(outgoing);
    const tellsMs = Date.parse(answer.headers.date ?? "");
    // The header holds whole seconds, the fraction cut off.
    this.#skewMs = Number.isNaN(tellsMs) ? undefined : tellsMs + 500 - this.#deps.clock.wallMs();
    return answer;
  }

  #refusal(operation: string, answer: Incoming): StoreError {
    const error = refusedBy(operation, answer.status, storeCode(answer));
    if (error.problem === "denied") this.#deps.credentials.doubt();
    return error;
  }
}

/** A body from buffers. */
export function bytesBody(slices: readonly Buffer[], byteCount: number): RequestBody {
  return { byteCount, slices: () => slices };
}

function textBody(text: string): Required<Pick<Wanted, "headers" | "body">> {
  const bytes = Buffer.from(text);
  return {
    body: bytesBody([bytes], bytes.length),
    headers: {
      "content-length": String(bytes.length),
      "content-type": "application/xml",
      // Older stores want it, and newer ones the hash of what is signed.
      "content-md5": createHash("md5").update(bytes).digest("base64"),
      "x-amz-content-sha256": createHash("sha256").update(bytes).digest("hex"),
    },
  };
}

function storeCode({ text }: Incoming): string {
  return childText(xmlRoot(text), "Code");
}

function crcText(crc32: number): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32);
  return bytes.toString("base64");
}

function crcOf(text: string): number | undefined {
  const bytes = Buffer.from(text, "base64");
  return bytes.length === 4 ? bytes.readUInt32BE() : undefined;
}

/** A key as it stands in a path and in what is signed: all but slashes and unreserved characters is escaped. */
function encodedKey(key: string): string {
  return key
    .split("/")
    .map((part) =>
      encodeURIComponent(part).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`),
    )
    .join("/");
}

/** Whole seconds, since an answer's header has no more and a listing may. */
function timeOf(text: string): number {
  const ms = Date.parse(text);
  return Number.isFinite(ms) ? Math.floor(ms / 1_000) * 1_000 : 0;
}

function ignoredRange(): StoreError {
  return new StoreError("refused", "the object store sent more than the range that was asked for");
}

/** SHA-256 as the signing library wants it, by Node's own. */
class Sha256 {
  readonly #hash: { update(data: Uint8Array): unknown; digest(): Buffer };

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash("sha256") : createHmac("sha256", bytesOf(secret));
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(bytesOf(data));
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(new Uint8Array(this.#hash.digest()));
  }

  reset(): void {
    // The library makes a new object for each hash.
  }
}

function bytesOf(data: string | ArrayBuffer | ArrayBufferView): Buffer {
  if (typeof data === "string") return Buffer.from(data);
  return ArrayBuffer.isView(data)
    ? Buffer.from(data.buffer, data.byteOffset, data.byteLength)
    : Buffer.from(data);
}
