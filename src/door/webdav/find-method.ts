// PROPFIND: properties of a resource, or of a collection and what lies directly in it, as a stream.
import type { DavExchange } from "./exchange.ts";
import { isLive, LIVE_NAMES, liveProperty, needsQuota, type PropertySource } from "./live-properties.ts";
import { type FindRequest, type PropertyName, readPropfind } from "./request-bodies.ts";
import { readDepth } from "./request-headers.ts";
import type { DavResource, DeadProperty } from "./resource.ts";
import { DavRefusal } from "./status-table.ts";
import { XML_MAX_BYTES } from "./xml-element.ts";
import { emptyElement, escapedXml } from "./xml-text.ts";

/** Media type of XML answers. */
export const XML_TYPE = 'application/xml; charset="utf-8"';

/** Start and end of a multi-status answer. */
export const MULTISTATUS_START = '<?xml version="1.0" encoding="utf-8"?>\n<D:multistatus xmlns:D="DAV:">';
export const MULTISTATUS_END = "</D:multistatus>\n";

/** Characters that are gathered before a part of the answer is sent. */
const PART_CHARACTERS = 32_768;

/** Answers a PROPFIND. Depth infinity is refused with propfind-finite-depth. */
export async function answerPropfind(exchange: DavExchange): Promise<void> {
  const depth = readDepth(exchange.header("depth"), "infinity");
  const request = readPropfind(await exchange.body(XML_MAX_BYTES));
  if (depth === "infinity") {
    throw new DavRefusal(403, "ask for depth 0 or 1", "propfind-finite-depth");
  }
  const resource = await exchange.resource(true);
  const finder = new Finder(exchange, request, await quotaFor(exchange, request));
  const { response } = exchange;
  const first = await finder.found(resource, true);
  response.statusCode = 207;
  response.setHeader("content-type", XML_TYPE);
  let part = MULTISTATUS_START + first;
  if (depth === "1" && resource.isCollection) {
    for await (const child of exchange.tree.list(exchange.path)) {
      const found = finder.found(child, false);
      // Waiting for what is there costs more than making it.
      part += typeof found === "string" ? found : await found;
      if (part.length < PART_CHARACTERS) continue;
      await exchange.send(part);
      part = "";
    }
  }
  response.end(part + MULTISTATUS_END);
}

async function quotaFor(exchange: DavExchange, request: FindRequest): Promise<PropertySource["quota"]> {
  const named = request.kind === "all" ? request.include : request.kind === "some" ? request.properties : [];
  return named.some(needsQuota) ? await exchange.tree.quota(exchange.path) : undefined;
}

class Finder {
  readonly #exchange: DavExchange;
  readonly #request: FindRequest;
  readonly #quota: PropertySource["quota"];
  readonly #hrefOf: PropertySource["hrefOf"];
  readonly #needsDead: boolean;

  constructor(exchange: DavExchange, request: FindRequest, quota: PropertySource["quota"]) {
    this.#exchange = exchange;
    this.#request = request;
    this.#quota = quota;
    this.#hrefOf = (path, isCollection) => exchange.hrefOf(path, isCollection);
    this.#needsDead = request.kind === "some" && request.properties.some((name) => !isLive(name));
  }

  /** One response element. Of entries in a listing, dead properties are told by name only. */
  found(resource: DavResource, isAsked: boolean): string | Promise<string> {
    const wantsDead = this.#request.kind === "some" ? this.#needsDead : isAsked;
    if (!wantsDead || resource.mayHaveProperties === false) return this.#written(resource, []);
    return this.#exchange.tree.properties(resource.path).then((dead) => this.#written(resource, dead));
  }

  #written(resource: DavResource, dead: readonly DeadProperty[]): string {
    const source: PropertySource = { resource, hrefOf: this.#hrefOf, quota: this.#quota };
    const { found, missing } = this.#sorted(source, dead);
    const href = escapedXml(this.#hrefOf(resource.path, resource.isCollection));
    const present = found.length > 0 || missing.length === 0 ? propstat(found, "200 OK") : "";
    const absent = missing.length > 0 ? propstat(missing, "404 Not Found") : "";
    return `<D:response><D:href>${href}</D:href>${present}${absent}</D:response>\n`;
  }

  #sorted(source: PropertySource, stored: readonly DeadProperty[]): { found: string[]; missing: string[] } {
    const request = this.#request;
    // Programs that speak gRPC may store any name; what the door computes stands alone.
    const dead = stored.filter((property) => !isLive(property));
    if (request.kind === "names") {
      const live = LIVE_NAMES.filter((name) => liveProperty(name, source) !== undefined);
      const own = dead.map(({ namespace, name }) => emptyElement(namespace, name));
      return { found: [...live.map((name) => `<D:${name}/>`), ...own], missing: [] };
    }
    const all = request.kind === "all";
    const named = all ? request.include : request.properties;
    const found = all ? [...everything(source), ...dead.map(({ xml }) => xml)] : [];
    const missing: string[] = [];
    for (const name of named) {
      const xml = this.#one(name, source, dead);
      if (xml === undefined) missing.push(emptyElement(name.namespace, name.name));
      else if (!all || needsQuota(name)) found.push(xml);
    }
    return { found, missing };
  }

  #one(name: PropertyName, source: PropertySource, dead: readonly DeadProperty[]): string | undefined {
    if (isLive(name)) return liveProperty(name.name, source);
    return dead.find((property) => property.namespace === name.namespace && property.name === name.name)?.xml;
  }
}

function everything(source: PropertySource): string[] {
  return LIVE_NAMES.map((name) => liveProperty(name, source)).filter((xml) => xml !== undefined);
}

function propstat(properties: readonly string[], status: string): string {
  return `<D:propstat><D:prop>${properties.join("")}</D:prop><D:status>HTTP/1.1 ${status}</D:status></D:propstat>`;
}
