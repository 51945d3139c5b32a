// PROPFIND: properties of a resource, or of a collection and what lies directly in it, as a stream.
import { type ErrorCode, isGroveError } from "#base/errors.ts";
import type { DavExchange } from "./exchange.ts";
import { encodedName } from "./href.ts";
import {
  isLive,
  LIVE_PROPERTIES,
  LIVE_PROPERTY_NAMES,
  type LiveProperty,
  liveProperty,
  needsQuota,
  type PropertySource,
} from "./live-properties.ts";
import { type FindRequest, type PropertyName, readPropfind } from "./request-bodies.ts";
import { readDepth } from "./request-headers.ts";
import type { DavResource, DeadProperty } from "./resource.ts";
import { DavRefusal } from "./status-table.ts";
import { XML_MAX_BYTES } from "./xml-body.ts";
import { emptyElement } from "./xml-text.ts";

/** Media type of XML answers. */
export const XML_TYPE = 'application/xml; charset="utf-8"';

/** Start and end of a multi-status answer. */
export const MULTISTATUS_START = '<?xml version="1.0" encoding="utf-8"?>\n<D:multistatus xmlns:D="DAV:">';
export const MULTISTATUS_END = "</D:multistatus>\n";

/** What is said of an entry that somebody has removed, or taken back, since its folder was listed. */
const GONE: readonly ErrorCode[] = ["NO_SUCH_PATH", "NOT_DIRECTORY", "NOT_SHARED", "NOT_OWNER"];

/** Characters that are gathered before a part of the answer is sent. */
const PART_CHARACTERS = 32_768;

/**
 * Answers a PROPFIND. Depth infinity is refused with propfind-finite-depth at a collection. Clients that leave the
 * header out mean the resource and its entries, so depth 1 is what they get.
 */
export async function answerPropfind(exchange: DavExchange): Promise<void> {
  const depth = readDepth(exchange.header("depth"), "1");
  const request = readPropfind(await exchange.body(XML_MAX_BYTES));
  const resource = await exchange.resource(true);
  if (depth === "infinity" && resource.isCollection) {
    throw new DavRefusal(403, "ask for depth 0 or 1", "propfind-finite-depth");
  }
  const finder = new Finder(exchange, request, await quotaFor(exchange, request));
  const { response } = exchange;
  const first = await finder.found(resource);
  response.statusCode = 207;
  response.setHeader("content-type", XML_TYPE);
  let part = MULTISTATUS_START + first;
  if (depth === "1" && resource.isCollection) {
    for await (const page of exchange.tree.list(exchange.path)) {
      for (const child of page) {
        const found = finder.foundBelow(child);
        // Waiting for what is there costs more than making it.
        part += typeof found === "string" ? found : await found;
        if (part.length < PART_CHARACTERS) continue;
        await exchange.send(part);
        part = "";
      }
    }
  }
  response.end(part + MULTISTATUS_END);
}

async function quotaFor(exchange: DavExchange, request: FindRequest): Promise<PropertySource["quota"]> {
  return namedIn(request).some(needsQuota) ? await exchange.tree.quota(exchange.path) : undefined;
}

/** A property that a request names; `live` is undefined for one that the door does not compute. */
interface NamedProperty {
  readonly name: PropertyName;
  readonly live: LiveProperty | undefined;
}

class Finder {
  readonly #exchange: DavExchange;
  readonly #kind: FindRequest["kind"];
  readonly #source: PropertySource;
  /** Those that are told of every resource that has them. */
  readonly #everything: readonly LiveProperty[];
  readonly #named: readonly NamedProperty[];
  readonly #needsDead: boolean;
  /** Address of what is asked for, as a collection. */
  readonly #above: string;

  constructor(exchange: DavExchange, request: FindRequest, quota: PropertySource["quota"]) {
    this.#exchange = exchange;
    this.#kind = request.kind;
    this.#source = { hrefOf: (path, isCollection) => exchange.hrefOf(path, isCollection), quota };
    this.#everything =
      request.kind === "all" ? LIVE_PROPERTIES : request.kind === "names" ? LIVE_PROPERTY_NAMES : [];
    const named = namedIn(request);
    this.#named = named.map((name) => ({ name, live: liveProperty(name) }));
    this.#needsDead = request.kind === "some" && named.some((name) => !isLive(name));
    this.#above = exchange.hrefOf(exchange.path, true);
  }

  /** The response element of what is asked for. */
  async found(resource: DavResource): Promise<string> {
    const href = this.#exchange.hrefOf(resource.path, resource.isCollection);
    const wantsDead = this.#kind !== "some" || this.#needsDead;
    return this.#written(href, resource, wantsDead ? await this.#deadOf(resource) : []);
  }

  /** That of an entry of its listing, of which dead properties are told by name only; nothing where it has gone. */
  foundBelow(resource: DavResource): string | Promise<string> {
    const name = encodedName(resource.path.at(-1) ?? "");
    const href = resource.isCollection ? `${this.#above}${name}/` : this.#above + name;
    if (!this.#needsDead || resource.mayHaveProperties === false) return this.#written(href, resource, []);
    return this.#deadOf(resource).then(
      (dead) => this.#written(href, resource, dead),
      (error: unknown) => {
        // What went after the listing was made would otherwise take all that is still there with it.
        if (isGroveError(error, ...GONE)) return "";
        throw error;
      },
    );
  }

  async #deadOf(resource: DavResource): Promise<readonly DeadProperty[]> {
    if (resource.mayHaveProperties === false) return [];
    const stored = await this.#exchange.tree.properties(resource.path);
    // Programs that speak gRPC may store any name; what the door computes stands alone.
    return stored.filter((property) => !isLive(property));
  }

  /** One response element; an address needs no escaping. */
  #written(href: string, resource: DavResource, dead: readonly DeadProperty[]): string {
    const kind = this.#kind;
    let found = "";
    let missing = "";
    for (const told of this.#everything) found += told(resource, this.#source) ?? "";
    if (kind !== "some") {
      for (const { namespace, name, xml } of dead)
        found += kind === "all" ? xml : emptyElement(namespace, name);
    }
    for (const { name, live } of this.#named) {
      const xml = live === undefined ? storedXml(name, dead) : live(resource, this.#source);
      if (xml === undefined) missing += emptyElement(name.namespace, name.name);
      else if (kind === "some" || needsQuota(name)) found += xml;
    }
    const present = found !== "" || missing === "" ? propstat(found, "200 OK") : "";
    const absent = missing === "" ? "" : propstat(missing, "404 Not Found");
    return `<D:response><D:href>${href}</D:href>${present}${absent}</D:response>\n`;
  }
}

function namedIn(request: FindRequest): readonly PropertyName[] {
  return request.kind === "all" ? request.include : request.kind === "some" ? request.properties : [];
}

function storedXml(name: PropertyName, dead: readonly DeadProperty[]): string | undefined {
  return dead.find((property) => property.namespace === name.namespace && property.name === name.name)?.xml;
}

function propstat(properties: string, status: string): string {
  return `<D:propstat><D:prop>${properties}</D:prop><D:status>HTTP/1.1 ${status}</D:status></D:propstat>`;
}
