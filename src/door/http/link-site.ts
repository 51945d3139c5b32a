// Links in a browser: the token in the address becomes a cookie of one path, and pages show what the link opens.
import { randomBytes } from "node:crypto";
import { LINK_TOKEN_PREFIX } from "#base/door-call.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import { networkOf } from "#base/network.ts";
import { requireWhole } from "#door/webdav/conditions.ts";
import { DavExchange } from "#door/webdav/exchange.ts";
import { answerGet } from "#door/webdav/file-methods.ts";
import { hrefOf, readHref } from "#door/webdav/href.ts";
import type { DavResource, DavTree } from "#door/webdav/resource.ts";
import { DAV_STATUS, DavRefusal, retryHeaders } from "#door/webdav/status-table.ts";
import type { ClientFacts } from "#os/client-address.ts";
import { DOOR_REQUESTS, DOOR_REQUESTS_PER_USER, DOOR_WAITING, DOOR_WAITING_PER_USER } from "./door-limits.ts";
import {
  dropPage,
  filePage,
  folderPage,
  LINK_PAGE_HEADERS,
  passwordPage,
  sentencePage,
} from "./link-pages.ts";
import type { LinkKey, LinkVisitor, LinkVisitors } from "./link-visitors.ts";
import type { OwnHosts } from "./own-hosts.ts";
import type { PacedExchange } from "./paced-exchange.ts";
import { Places } from "./places.ts";

/** Where links are. */
export const LINK_PREFIX = "/l";

const ID = /^[a-z2-7]{12}$/u;
const TOKEN = /^gl_[0-9a-z]{26}_([a-z2-7]{12})_[a-z2-7]{32}$/u;
/** Bytes of the form with the password: 256 characters, each of four bytes and encoded. */
const FORM_MAX_BYTES = 4_096;
/** How long a browser keeps the cookie. */
const COOKIE_SECONDS = 86_400;
const VISITOR_BYTES = 16;

const CACHE_CONTROL = "no-store";
/** Headers of everything below /l/. */
const LINK_HEADERS: Readonly<Record<string, string>> = {
  "referrer-policy": "no-referrer",
  "cache-control": CACHE_CONTROL,
  "x-robots-tag": "noindex, nofollow",
};

/** Parts of it. */
export interface LinkSiteDeps {
  readonly visitors: LinkVisitors;
  readonly hosts: OwnHosts;
  readonly log: Logger;
}

/** One request below /l/. */
interface LinkRequest {
  readonly exchange: PacedExchange;
  readonly facts: ClientFacts;
  readonly id: string;
  /** Names below what the link opens. */
  readonly path: readonly string[];
  readonly hasSlash: boolean;
  readonly awaitsContinue: boolean;
}

/** Answers what is below /l/. */
export class LinkSite {
  readonly #deps: LinkSiteDeps;
  readonly #places = new Places({
    total: DOOR_REQUESTS,
    perParty: DOOR_REQUESTS_PER_USER,
    waiting: DOOR_WAITING,
    waitingPerParty: DOOR_WAITING_PER_USER,
  });

  constructor(deps: LinkSiteDeps) {
    this.#deps = deps;
  }

  /** Answers one request, also where it is refused. */
  async answer(
    exchange: PacedExchange,
    facts: ClientFacts,
    at: { readonly path: string; readonly awaitsContinue: boolean },
  ): Promise<void> {
    for (const [name, value] of Object.entries(LINK_HEADERS)) exchange.setHeader(name, value);
    try {
      await this.#places.run(networkOf(facts.address), exchange, () => this.#answer(exchange, facts, at));
    } catch (error) {
      this.#refuse(exchange, error);
    }
  }

  async #answer(
    exchange: PacedExchange,
    facts: ClientFacts,
    { path: written, awaitsContinue }: { readonly path: string; readonly awaitsContinue: boolean },
  ): Promise<void> {
    if ("service-worker" in exchange.headers) throw new DavRefusal(403, "no worker may stay here");
    const { path, hasSlash } = readHref(written, LINK_PREFIX);
    const [first = "", ...rest] = path;
    const method = exchange.method ?? "";
    const isLook = method === "GET" || method === "HEAD";
    if (first.startsWith(LINK_TOKEN_PREFIX)) {
      if (!isLook) throw notAllowed(exchange, "GET, HEAD");
      return this.#takeToken(exchange, facts, first);
    }
    if (!ID.test(first)) throw noLink();
    const request = { exchange, facts, id: first, path: rest, hasSlash, awaitsContinue };
    if (isLook) return await this.#show(request);
    if (method === "POST" && rest.length === 0) return await this.#takePassword(request);
    if (method === "PUT") return await this.#takeFile(request);
    throw notAllowed(exchange, "GET, HEAD, POST, PUT");
  }

  /** The token leaves the address for a cookie: it stands in no history, and in no Referer. */
  #takeToken(exchange: PacedExchange, facts: ClientFacts, token: string): void {
    const [, id] = TOKEN.exec(token) ?? [];
    if (id === undefined) throw noLink();
    const visitor = randomBytes(VISITOR_BYTES).toString("hex");
    setCookie(exchange, facts, id, { token, visitor, pass: "" });
    redirect(exchange, hrefOf(LINK_PREFIX, [id], true));
  }

  async #show(request: LinkRequest): Promise<void> {
    const { exchange, facts, id } = request;
    const key = this.#keyOf(request);
    let visitor: LinkVisitor;
    try {
      visitor = await this.#deps.visitors.open(key, facts.address);
    } catch (error) {
      if (isGroveError(error) && error.metadata["link"] === "password") {
        // Programs that fetch a file must not take the form for it.
        return sendPage(exchange, request.path.length === 0 ? 200 : 403, passwordPage(id, undefined));
      }
      throw error;
    }
    exchange.whenGone(() => visitor.release());
    if (exchange.isGone) return;
    await this.#showTo(visitor, request);
  }

  async #showTo(visitor: LinkVisitor, request: LinkRequest): Promise<void> {
    const { exchange, id, path, hasSlash } = request;
    if (visitor.facts.isDrop) {
      if (path.length > 0) throw nothingThere();
      return sendPage(exchange, 200, dropPage(visitor.facts));
    }
    const tree = treeOf(visitor);
    const there = path.length === 0 ? await visitor.look([]) : await tree.look(path);
    if (there === undefined) throw nothingThere();
    if (there.isCollection) {
      if (path.length > 0 && !hasSlash) return redirect(exchange, hrefOf(LINK_PREFIX, [id, ...path], true));
      const after = new URLSearchParams(exchange.url.split("?", 2)[1] ?? "").get("after") ?? "";
      return sendPage(exchange, 200, folderPage(id, visitor.facts, path, await visitor.list(path, after)));
    }
    if (path.length === 0) return sendPage(exchange, 200, filePage(id, visitor.facts, there));
    await this.#sendFile(tree, request);
  }

  /** A file, always as an attachment: nothing of a user's ever renders here. */
  async #sendFile(tree: Looks, { exchange, path, id, awaitsContinue }: LinkRequest): Promise<void> {
    // Before the first byte, which several ranges begin with a line of their own.
    exchange.setHeader("content-disposition", attachment(path.at(-1) ?? "file"));
    const prefix = `${LINK_PREFIX}/${id}`;
    const place = { prefix, hosts: this.#deps.hosts.all, cacheControl: CACHE_CONTROL };
    await answerGet(new DavExchange(exchange, exchange, { tree: tree as DavTree, place, awaitsContinue }));
  }

  async #takePassword(request: LinkRequest): Promise<void> {
    const { exchange, facts, id } = request;
    this.#requireOwnPage(exchange);
    const key = this.#keyOf(request);
    const form = new URLSearchParams(await textOf(exchange, request.awaitsContinue));
    const password = form.get("password") ?? "";
    if (password === "") return sendPage(exchange, 400, passwordPage(id, "Type the password."));
    try {
      const visitor = await this.#deps.visitors.open({ ...key, pass: "", password }, facts.address);
      visitor.release();
      setCookie(exchange, facts, id, { ...key, pass: visitor.facts.pass });
    } catch (error) {
      if (isGroveError(error) && error.metadata["link"] === "wrong") {
        return sendPage(exchange, 403, passwordPage(id, "That is not the password of this link."));
      }
      throw error;
    }
    redirect(exchange, hrefOf(LINK_PREFIX, [id], true));
  }

  async #takeFile(request: LinkRequest): Promise<void> {
    const { exchange, facts, path, awaitsContinue } = request;
    this.#requireOwnPage(exchange);
    requireWhole(exchange.headers);
    const [name, more] = path;
    if (name === undefined || more !== undefined) throw new DavRefusal(400, "a file needs a name");
    const length = exchange.headers["content-length"];
    const size = typeof length === "string" && /^\d{1,15}$/u.test(length) ? Number(length) : undefined;
    if (size === undefined) throw new DavRefusal(411, "the size of the file has to be told");
    const visitor = await this.#deps.visitors.open(this.#keyOf(request), facts.address);
    exchange.whenGone(() => visitor.release());
    if (exchange.isGone) return;
    if (!visitor.facts.isDrop) throw new DavRefusal(403, "this link takes no files");
    if (awaitsContinue) exchange.writeContinue();
    await visitor.drop(name, size, exchange);
    sendText(exchange, 201, "sent\n");
  }

  /** Throws where another site's page sends the request: browsers tell, and other programs send no such header. */
  #requireOwnPage({ headers }: PacedExchange): void {
    const site = headers["sec-fetch-site"];
    const { origin } = headers;
    const isOwnSite = site === undefined || site === "same-origin";
    const host = typeof origin === "string" ? URL.parse(origin)?.host : undefined;
    // A page without referrers sends "null" as its origin; Sec-Fetch-Site then tells.
    const isOwnOrigin =
      origin === undefined || this.#deps.hosts.has(host) || (origin === "null" && site === "same-origin");
    if (!isOwnSite || !isOwnOrigin) throw new DavRefusal(403, "this came from another site's page");
  }

  #keyOf({ exchange, facts, id }: LinkRequest): LinkKey {
    const key = readCookie(exchange.headers["cookie"], facts);
    if (key === undefined || TOKEN.exec(key.token)?.[1] !== id) throw noLink();
    return key;
  }

  #refuse(exchange: PacedExchange, error: unknown): void {
    if (exchange.destroyed) return;
    if (exchange.headersSent) return exchange.destroy();
    const { status, title, text } = this.#refusalOf(error);
    for (const [name, seconds] of Object.entries(retryHeaders(status, error)))
      exchange.setHeader(name, seconds);
    // A refusal before a file's first byte is a page, and no file.
    exchange.setHeader("content-disposition", "inline");
    const isForScript = exchange.method === "PUT";
    if (isForScript) sendText(exchange, status, `${text}\n`);
    else sendPage(exchange, status, sentencePage(title, text));
  }

  #refusalOf(error: unknown): { readonly status: number; readonly title: string; readonly text: string } {
    if (error instanceof DavRefusal)
      return { status: error.status, title: "That did not work", text: error.message };
    if (!(error instanceof GroveError)) {
      this.#deps.log.error("door_failed", { error: errorText(error) });
      return { status: 500, title: "That did not work", text: "an error of the door; try again later" };
    }
    if (error.code === "TOKEN_REJECTED" || error.metadata["link"] === "ended") {
      return { status: 404, title: "This link opens nothing", text: ENDED };
    }
    if (error.metadata["link"] === "used-up") {
      return { status: 410, title: "This link is used up", text: USED_UP };
    }
    if (error.metadata["link"] === "too-large") {
      return { status: 413, title: "This file is too large", text: TOO_LARGE };
    }
    const text = SENTENCES.get(error.code) ?? error.message;
    return { status: DAV_STATUS[error.code].status, title: "That did not work", text };
  }
}

const ENDED =
  "It may have ended, or its file is gone. Open it again from where you got it, or ask who gave it to you.";
const USED_UP = "This link allows no more. Ask who gave it to you for another.";
const TOO_LARGE =
  "This link takes no file of that size any more: send a smaller one, or ask for another link.";
const SENTENCES: ReadonlyMap<string, string> = new Map([
  ["QUOTA_EXCEEDED", "there is no room for it at the moment; ask who gave you the link"],
  ["NOT_SHARED", "this link does not let you do that"],
  ["WRONG_NODE", "what this link opens is being moved; try again in a moment"],
  ["RATE_LIMITED", "too many requests or wrong passwords came from your network; wait some minutes"],
]);

type Looks = Pick<DavTree, "look" | "fetch" | "read">;

/** What a visitor reads; a link to one file has it under its name. */
function treeOf(visitor: LinkVisitor): Looks {
  const { isFolder, name } = visitor.facts;
  const inner = (path: readonly string[]): readonly string[] => (isFolder ? path : []);
  const isThere = (path: readonly string[]): boolean => isFolder || (path.length === 1 && path[0] === name);
  const look = async (path: readonly string[]): Promise<DavResource | undefined> => {
    const found = isThere(path) ? await visitor.look(inner(path)) : undefined;
    return found && { ...found, path };
  };
  return {
    look,
    // Whoever looks at a link has not loaded its file yet, which is counted.
    fetch: async (path) => {
      const resource = await look(path);
      return resource && { resource };
    },
    read: (path, etag, range, take) => visitor.read(inner(path), etag, range, take),
  };
}

function setCookie(
  exchange: PacedExchange,
  facts: ClientFacts,
  id: string,
  { token, visitor, pass }: LinkKey,
): void {
  const path = hrefOf(LINK_PREFIX, [id], true);
  const secure = facts.isSecure ? "; Secure" : "";
  exchange.setHeader(
    "set-cookie",
    `${cookieName(facts)}=${token}.${visitor}.${pass}; Path=${path}; Max-Age=${COOKIE_SECONDS}; HttpOnly; SameSite=Lax${secure}`,
  );
}

function readCookie(header: string | string[] | undefined, facts: ClientFacts): LinkKey | undefined {
  const text = Array.isArray(header) ? header.join("; ") : (header ?? "");
  const wanted = `${cookieName(facts)}=`;
  const found = text.split(";").find((part) => part.trim().startsWith(wanted));
  const value = found?.trim().slice(wanted.length) ?? "";
  const [, token = "", visitor = "", pass = ""] =
    /^(gl_[0-9a-z_]{72})\.([0-9a-f]{32})\.([A-Za-z0-9._-]{0,80})$/u.exec(value) ?? [];
  return token === "" ? undefined : { token, visitor, pass };
}

/** Browsers take the prefix over HTTPS alone. */
function cookieName({ isSecure }: ClientFacts): string {
  return isSecure ? "__Secure-grove-link" : "grove-link";
}

async function textOf(exchange: PacedExchange, awaitsContinue: boolean): Promise<string> {
  if (awaitsContinue) exchange.writeContinue();
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of exchange) {
    bytes += part.length;
    if (bytes > FORM_MAX_BYTES) throw new DavRefusal(413, "the form is too long");
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

function redirect(exchange: PacedExchange, to: string): void {
  exchange.statusCode = 303;
  exchange.setHeader("location", to);
  exchange.setHeader("content-length", 0);
  exchange.end();
}

function sendPage(exchange: PacedExchange, status: number, text: string): void {
  for (const [name, value] of Object.entries({ ...LINK_PAGE_HEADERS, ...LINK_HEADERS }))
    exchange.setHeader(name, value);
  send(exchange, status, text);
}

function sendText(exchange: PacedExchange, status: number, text: string): void {
  exchange.setHeader("content-type", "text/plain; charset=utf-8");
  exchange.setHeader("x-content-type-options", "nosniff");
  send(exchange, status, text);
}

function send(exchange: PacedExchange, status: number, text: string): void {
  exchange.statusCode = status;
  exchange.setHeader("content-length", Buffer.byteLength(text));
  exchange.end(exchange.method === "HEAD" ? undefined : text);
}

/** A name for every system, and the real one for those that read it (RFC 6266). */
function attachment(name: string): string {
  const plain = name.replace(/[^A-Za-z0-9._ -]/gu, "_");
  const encoded = encodeURIComponent(name).replace(
    /['()*]/gu,
    (letter) => `%${letter.charCodeAt(0).toString(16)}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}

function notAllowed(exchange: PacedExchange, allowed: string): DavRefusal {
  exchange.setHeader("allow", allowed);
  return new DavRefusal(405, "this address is not for that");
}

function nothingThere(): DavRefusal {
  return new DavRefusal(404, "nothing is there");
}

function noLink(): GroveError {
  return new GroveError("TOKEN_REJECTED", "there is no such link", { metadata: { link: "ended" } });
}
