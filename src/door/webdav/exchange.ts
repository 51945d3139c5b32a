// One WebDAV request with its answer: address, headers, body, and the ways to reply.
import { GroveError } from "#base/errors.ts";
import { hasConditions, headerOf, judgeConditions, type RequestHeaders } from "./conditions.ts";
import { hrefOf, readHref } from "./href.ts";
import { type IfList, type IfState, ifHolds, readIf, submittedTokens } from "./if-header.ts";
import { sendPart } from "./outlet.ts";
import { readAddress } from "./request-headers.ts";
import type { DavLock, DavResource, DavTree, Fetched, SubmittedTokens } from "./resource.ts";
import { DavRefusal } from "./status-table.ts";

/** The part of a server's request that WebDAV reads; those of HTTP/1.1 and HTTP/2 both have it. */
export interface HttpRequest extends AsyncIterable<Uint8Array> {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: RequestHeaders;
  /** True where a body follows that no header announces, as in HTTP/2. */
  readonly hasUntoldBody?: boolean;
}

/** The part of a server's response that WebDAV uses. */
export interface HttpResponse {
  statusCode: number;
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  setHeader(name: string, value: string | number): unknown;
  removeHeader(name: string): unknown;
  writeContinue(): void;
  write(chunk: string | Uint8Array): boolean;
  /** All parts as one. False where `drain` will tell that there is room again. */
  writeAll(parts: readonly Uint8Array[]): boolean;
  end(chunk?: string | Uint8Array): unknown;
  destroy(error?: Error): unknown;
  on(event: "close", listener: () => void): unknown;
  once(event: "drain" | "close", listener: () => void): unknown;
  off(event: "drain" | "close", listener: () => void): unknown;
}

/** Where a door's tree is, and under which names. */
export interface DavPlace {
  /** "/dav", without a slash at the end. */
  readonly prefix: string;
  /** Hosts, with ports, under which this door is known; in lower case. */
  readonly hosts: ReadonlySet<string>;
  /** Cache-Control of files; undefined where their user's own browser may keep them and ask each time. */
  readonly cacheControl?: string;
}

/** The version by which a request's conditions were judged: an etag, nothing there, or no condition. */
export type JudgedVersion = { readonly etag: string } | "none" | "any";

/** The etag of a judged version; undefined where there is none. */
export function versionIn(judged: JudgedVersion): string | undefined {
  return typeof judged === "string" ? undefined : judged.etag;
}

/** One request and its answer. */
export class DavExchange {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly tree: DavTree;
  readonly place: DavPlace;
  readonly path: readonly string[];
  /** True where the address ended in "/". */
  readonly hasSlash: boolean;
  readonly #ifLists: readonly IfList[];
  /** True for a client that sends its body once it is told to. */
  readonly awaitsContinue: boolean;
  /** What the etags of the If header were compared with, by the paths of resources. */
  readonly #comparedEtags = new Map<string, string | undefined>();
  #hasReadBody = false;

  constructor(
    request: HttpRequest,
    response: HttpResponse,
    options: { readonly tree: DavTree; readonly place: DavPlace; readonly awaitsContinue: boolean },
  ) {
    this.request = request;
    this.response = response;
    this.tree = options.tree;
    this.place = options.place;
    this.awaitsContinue = options.awaitsContinue;
    const url = request.url ?? "";
    if (url.includes("#")) throw new GroveError("BAD_ARGUMENT", "an address has no fragment");
    const href = readHref(url.split("?", 1)[0] ?? "", options.place.prefix);
    this.path = href.path;
    this.hasSlash = href.hasSlash;
    const header = this.header("if");
    this.#ifLists = header === undefined ? [] : readIf(header);
  }

  /** A header's value; undefined where it is absent. */
  header(name: string): string | undefined {
    return headerOf(this.request.headers, name);
  }

  /** Tokens that the If header submits. */
  get tokens(): SubmittedTokens {
    return submittedTokens(this.#ifLists);
  }

  /** Throws 412 where the If header does not hold. */
  async checkIf(): Promise<void> {
    if (this.#ifLists.length === 0) return;
    if (!(await ifHolds(this.#ifLists, (resource) => this.#comparedState(resource)))) {
      throw new DavRefusal(412, "the condition of the If header does not hold");
    }
  }

  /** Throws 412 where If-Match and its like do not hold of what is there, before anything is changed. */
  checkVersion(resource: DavResource | undefined): void {
    if (judgeConditions(this.request.headers, resource, false) === "go") return;
    throw anotherVersion();
  }

  /**
   * The version that a change must find, since this request's conditions hold of it. Throws 412 where the If
   * header was judged by another one.
   */
  judgedVersion(path: readonly string[], resource: DavResource | undefined): JudgedVersion {
    const isConditional = hasConditions(this.request.headers);
    if (this.#comparedEtags.size === 0 && !isConditional) return "any";
    const key = keyOf(path);
    if (this.#comparedEtags.has(key)) {
      if (this.#comparedEtags.get(key) !== resource?.etag) throw anotherVersion();
    } else if (key !== keyOf(this.path) || !isConditional) return "any";
    return resource === undefined ? "none" : { etag: resource.etag };
  }

  /** The resource of the request. Throws NO_SUCH_PATH where there is none. */
  async resource(withLocks = false): Promise<DavResource> {
    return existing(await this.tree.look(this.path, withLocks));
  }

  /** The resource of the request, with its bytes where they are few. Throws NO_SUCH_PATH where there is none. */
  async fetched(): Promise<Fetched> {
    return existing(await this.tree.fetch(this.path));
  }

  /** Names in the Destination header. Throws 502 for another server, BAD_ARGUMENT without the header. */
  destination(): readonly string[] {
    const header = this.header("destination");
    if (header === undefined) throw new GroveError("BAD_ARGUMENT", "the request lacks a Destination");
    const { host, path } = readAddress(header, "Destination");
    if (host !== undefined && !this.place.hosts.has(host)) {
      throw new DavRefusal(502, "the Destination lies on another server");
    }
    return readHref(path, this.place.prefix).path;
  }

  /** The whole body, of at most so many bytes. Throws 413 for more, 400 for another length than was told. */
  async body(maxBytes: number): Promise<Buffer> {
    const told = this.header("content-length");
    const declared = Number(told ?? 0);
    if (declared > maxBytes) throw new DavRefusal(413, `the body has more than ${maxBytes} bytes`);
    const parts: Uint8Array[] = [];
    let bytes = 0;
    for await (const part of this.stream()) {
      bytes += part.length;
      if (bytes > maxBytes) throw new DavRefusal(413, `the body has more than ${maxBytes} bytes`);
      parts.push(part);
    }
    if (told !== undefined && bytes !== declared)
      throw new DavRefusal(400, `the body has not the ${declared} bytes that were announced`);
    const [first] = parts;
    const isOne = first !== undefined && parts.length === 1;
    return isOne ? Buffer.from(first.buffer, first.byteOffset, bytes) : Buffer.concat(parts, bytes);
  }

  /** The body piece by piece. A client that waits for leave to send it gets that leave once a piece is wanted. */
  stream(): AsyncIterable<Uint8Array> {
    return {
      [Symbol.asyncIterator]: () => {
        if (this.awaitsContinue && !this.#hasReadBody) this.response.writeContinue();
        this.#hasReadBody = true;
        return this.request[Symbol.asyncIterator]();
      },
    };
  }

  /** True where the request has a body, of known length or not. */
  get hasBody(): boolean {
    const length = this.header("content-length");
    if (this.header("transfer-encoding") !== undefined) return true;
    return length === undefined ? this.request.hasUntoldBody === true : Number(length) > 0;
  }

  /** The address of a resource, encoded. */
  hrefOf(path: readonly string[], isCollection: boolean): string {
    return hrefOf(this.place.prefix, path, isCollection);
  }

  /** Answers with a status alone. */
  replyStatus(status: number): void {
    this.response.statusCode = status;
    if (status !== 204 && status !== 304) this.response.setHeader("content-length", 0);
    this.#closeAfterUnreadBody();
    this.response.end();
  }

  /** Answers with a whole body. */
  replyText(status: number, type: string, text: string): void {
    const bytes = Buffer.from(text);
    this.response.statusCode = status;
    this.response.setHeader("content-type", type);
    this.response.setHeader("content-length", bytes.length);
    this.#closeAfterUnreadBody();
    this.response.end(this.request.method === "HEAD" ? undefined : bytes);
  }

  /** Sends a part of a body and waits until the connection takes more. Throws when it is gone. */
  send(part: string | Uint8Array): Promise<void> {
    return sendPart(this.response, part);
  }

  /** A body that was never read would be taken for the next request: the connection ends with the answer. */
  #closeAfterUnreadBody(): void {
    if (this.hasBody && !this.#hasReadBody) this.response.setHeader("connection", "close");
  }

  async #comparedState(tag: string | undefined): Promise<IfState> {
    const path = tag === undefined ? this.path : this.#ownPath(tag);
    const state = await this.#stateOf(path);
    const conditions = this.#ifLists.flatMap((list) => (list.resource === tag ? list.conditions : []));
    if (path !== undefined && conditions.some(({ kind }) => kind === "etag")) {
      const key = keyOf(path);
      if (!this.#comparedEtags.has(key)) this.#comparedEtags.set(key, state.etag);
    }
    return state;
  }

  async #stateOf(path: readonly string[] | undefined): Promise<IfState> {
    const resource = path === undefined ? undefined : await this.tree.look(path, true);
    if (resource !== undefined) {
      return { etag: resource.etag, tokens: tokensOf(resource.locks) };
    }
    // A resource that is to be made stands under the deep locks of its collection.
    const parent =
      path === undefined || path.length === 0 ? undefined : await this.tree.look(path.slice(0, -1), true);
    const deep = (parent?.locks ?? []).filter(({ isDeep }) => isDeep);
    return { etag: undefined, tokens: tokensOf(deep) };
  }

  /** Names of an address on this door; undefined for any other. */
  #ownPath(tag: string): readonly string[] | undefined {
    try {
      const { host, path } = readAddress(tag, "If");
      return host === undefined || this.place.hosts.has(host)
        ? readHref(path, this.place.prefix).path
        : undefined;
    } catch (error) {
      if (error instanceof GroveError) return undefined;
      throw error;
    }
  }
}

function keyOf(path: readonly string[]): string {
  return path.join("/");
}

function anotherVersion(): DavRefusal {
  return new DavRefusal(412, "what is there has another version: look at it again");
}

function tokensOf(locks: readonly DavLock[]): string[] {
  return locks.map(({ token }) => token).filter((token) => token !== "");
}

function existing<T>(found: T | undefined): T {
  if (found === undefined) throw new GroveError("NO_SUCH_PATH", "no such file or folder");
  return found;
}
