// A WebDAV server as the source of an import: folders by PROPFIND of depth 1, files by ranges of GET.
import type { IncomingMessage } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { ClientError } from "#client/terminal/client-error.ts";
import type { SourceState } from "#client/transfer/local-source.ts";
import { chunked } from "./chunked.ts";
import { type BasicCredentials, HttpConnections, type HttpWish, unreachable } from "./http-exchange.ts";
import {
  type ImportEntry,
  type ImportFile,
  type ImportSource,
  type ListedEntry,
  stateElsewhere,
  walkListings,
} from "./import-source.ts";
import { DavListing, type DavResource } from "./webdav-listing.ts";

const PROPERTIES =
  '<?xml version="1.0" encoding="utf-8"?><propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/>' +
  "<getlastmodified/><getetag/></prop></propfind>";
/** Answers that a later try may better, and how often one file's bytes are asked for without any coming. */
const PASSING = new Set([408, 429, 500, 502, 503, 504]);
const TRIES_MAX = 5;
const PAUSE_MS = 500;

/** Reads by HTTP. */
export class WebDavSource implements ImportSource {
  readonly name: string;
  readonly #base: URL;
  readonly #connections: HttpConnections;
  readonly #signal: AbortSignal;

  constructor(
    base: URL,
    options: { credentials: BasicCredentials | undefined; ca: string | undefined; signal: AbortSignal },
  ) {
    this.#base = base;
    if (!base.pathname.endsWith("/")) this.#base.pathname += "/";
    this.#connections = new HttpConnections(base, options);
    this.#signal = options.signal;
    const who = options.credentials === undefined ? "" : `${encodeURIComponent(options.credentials.user)}@`;
    this.name = `${base.protocol}//${who}${base.host}${base.pathname}`;
  }

  entries(): AsyncIterable<ImportEntry> {
    return walkListings(this.#base.href, (address) => this.#list(new URL(address)));
  }

  async look({ address }: ImportFile): Promise<SourceState> {
    const [found] = await this.#properties(new URL(address), "0");
    if (found === undefined) throw noListing(this.#base);
    return stateElsewhere({ ...found, version: found.etag });
  }

  chunks(file: ImportFile, fromBytes: number): AsyncIterable<Buffer> {
    return chunked(this.#pieces(file, fromBytes), file.sizeBytes - fromBytes, file.place);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connections.close();
  }

  async #list(folder: URL): Promise<ListedEntry[]> {
    const own = pathOf(folder);
    const entries: ListedEntry[] = [];
    for (const resource of await this.#properties(folder, "1")) {
      const { href, isFolder, sizeBytes, mtimeMs, etag } = resource;
      const url = addressBelow(href, folder);
      if (url === undefined || pathOf(url) === own) continue;
      if (isFolder && !url.pathname.endsWith("/")) url.pathname += "/";
      const isBelow =
        pathOf(url).startsWith(`${own}/`) &&
        !pathOf(url)
          .slice(own.length + 1)
          .includes("/");
      if (!isBelow) continue;
      entries.push({
        name: decoded(pathOf(url).slice(own.length + 1)),
        kind: isFolder ? "folder" : "file",
        address: url.href,
        sizeBytes,
        mtimeMs,
        version: etag,
      });
    }
    return entries;
  }

  async #properties(url: URL, depth: "0" | "1"): Promise<DavResource[]> {
    const headers = { depth, "content-type": "application/xml; charset=utf-8" };
    const wish: HttpWish = { method: "PROPFIND", url, headers, body: PROPERTIES };
    const answer = await this.#answered(wish);
    if (answer.statusCode !== 207) throw refused(answer, url);
    const listing = new DavListing();
    const decoder = new TextDecoder();
    try {
      for await (const piece of answer as AsyncIterable<Buffer>) {
        listing.write(decoder.decode(piece, { stream: true }), piece.length);
      }
      listing.write(decoder.decode(), 0);
      listing.end();
    } catch (error) {
      this.#signal.throwIfAborted();
      if (error instanceof SyntaxError) throw noListing(url);
      throw unreachable(url, error);
    }
    return listing.resources;
  }

  /** The bytes of a file, asked for again from where they stopped. */
  async *#pieces({ address, sizeBytes, version }: ImportFile, fromBytes: number): AsyncGenerator<Buffer> {
    const url = new URL(address);
    let at = fromBytes;
    for (let tries = 1; at < sizeBytes; tries++) {
      const isPart = at > 0;
      // A weak etag does not stand for bytes, so servers refuse it here.
      const ifMatch = version.startsWith('"') ? { "if-match": version } : {};
      const range = isPart ? { range: `bytes=${at}-` } : {};
      const answer = await this.#answered({ method: "GET", url, headers: { ...range, ...ifMatch } });
      if (answer.statusCode !== (isPart ? 206 : 200)) throw refused(answer, url);
      if (isPart && !(answer.headers["content-range"] ?? "").startsWith(`bytes ${at}-`)) {
        throw refused(answer, url);
      }
      try {
        for await (const piece of answer as AsyncIterable<Buffer>) {
          at += piece.length;
          tries = 0;
          yield piece;
        }
        // A whole answer that is too short is no interruption.
        return;
      } catch (error) {
        this.#signal.throwIfAborted();
        if (tries >= TRIES_MAX) throw unreachable(url, error);
      } finally {
        answer.destroy();
      }
    }
  }

  /** The head of an answer, after as many tries as may help. */
  async #answered(wish: HttpWish): Promise<IncomingMessage> {
    for (let tries = 1; ; tries++) {
      try {
        const answer = await this.#connections.send(wish);
        if (tries >= TRIES_MAX || !PASSING.has(answer.statusCode ?? 0)) return answer;
        answer.resume();
      } catch (error) {
        this.#signal.throwIfAborted();
        if (tries >= TRIES_MAX) throw error;
      }
      // Between tries nothing else keeps the process alive. An abort is told by the next one.
      await delay(PAUSE_MS * 2 ** (tries - 1), undefined, { signal: this.#signal }).catch(() => undefined);
      this.#signal.throwIfAborted();
    }
  }
}

function refused(answer: IncomingMessage, url: URL): ClientError {
  answer.destroy();
  const status = answer.statusCode ?? 0;
  const path = decoded(url.pathname) ?? url.pathname;
  if (status === 401 || status === 403) {
    return new ClientError(
      "LOCAL_DENIED",
      `${path}: ${url.host} refuses this name and password (${status})`,
      {
        todo: "Check them; some servers want a password made for programs.",
      },
    );
  }
  if (status === 404) {
    return new ClientError("LOCAL_NOT_FOUND", `${path}: ${url.host} has no such file or folder`, {
      todo: "Check the address.",
    });
  }
  if (status === 412) {
    return new ClientError("SOURCE_FAILED", `${path} changed while it was read`, {
      todo: "Import it again when nobody writes to it.",
    });
  }
  if (status >= 300 && status < 400) {
    return new ClientError("SOURCE_FAILED", `${path}: ${url.host} answers with another address`, {
      todo: "Name that address.",
    });
  }
  return new ClientError("SOURCE_FAILED", `${path}: ${url.host} answered ${status}`);
}

function noListing(url: URL): ClientError {
  return new ClientError("SOURCE_FAILED", `${url.host} answers what is not WebDAV`, {
    todo: "Check the address: many servers have WebDAV below a path of its own, such as /dav/.",
  });
}

/**
 * The address of a resource that a listing names. Of what the server says only the path and the query count:
 * nothing is fetched from another host or port, with this one's password.
 */
export function addressBelow(href: string, folder: URL): URL | undefined {
  const said = URL.canParse(href, folder.href) ? new URL(href, folder.href) : undefined;
  // The path of others, such as mailto:, is no path.
  if (said === undefined || !/^https?:$/.test(said.protocol)) return undefined;
  const url = new URL(folder.href);
  [url.pathname, url.search] = [said.pathname, said.search];
  return url;
}

/** The path without its last slash, spelled alike whoever wrote it. */
function pathOf(url: URL): string {
  const path = url.pathname.replace(/\/+$/, "");
  return path
    .split("/")
    .map((part) => encodeURIComponent(decoded(part) ?? part))
    .join("/");
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
