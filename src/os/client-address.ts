// Finds a request's client address, from the connection or a trusted proxy (C-04), and whether it used TLS.
import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";
import { GroveError } from "#base/errors.ts";
import { isLoopbackAddress, networkOf } from "#base/network.ts";

/** What the connection and its headers say about the client. */
export interface ClientFacts {
  /** The client's address; an IPv4 address never in its IPv6 form. */
  readonly address: string;
  /** True for a process of this machine, unless the request was forwarded. */
  readonly isLoopback: boolean;
  /** True when the client connected over TLS, to the console or to a trusted proxy. */
  readonly isSecure: boolean;
}

/** Proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted. */
export class TrustedProxies {
  readonly #list = new BlockList();
  readonly #isEmpty: boolean;

  /** Takes addresses and networks (`10.0.0.1`, `10.0.0.0/8`, `fd00::/8`), else throws BAD_ARGUMENT. */
  constructor(places: readonly string[] = []) {
    this.#isEmpty = places.length === 0;
    for (const place of places) this.#add(place);
  }

  /** True for the address of a trusted proxy. */
  has(address: string): boolean {
    if (this.#isEmpty) return false;
    const family = isIP(address);
    return family !== 0 && this.#list.check(address, family === 6 ? "ipv6" : "ipv4");
  }

  #add(place: string): void {
    const [address = "", prefix, ...rest] = place.trim().split("/");
    const family = isIP(address);
    const bits =
      prefix === undefined ? (family === 6 ? 128 : 32) : /^\d{1,3}$/.test(prefix) ? Number(prefix) : -1;
    if (family === 0 || rest.length > 0 || bits < 0 || bits > (family === 6 ? 128 : 32)) {
      throw new GroveError(
        "BAD_ARGUMENT",
        `${JSON.stringify(place)} is neither an address nor a network such as 10.0.0.0/8`,
      );
    }
    this.#list.addSubnet(address, bits, family === 6 ? "ipv6" : "ipv4");
  }
}

/** Reads the client's address; in X-Forwarded-For the right-most address that is no trusted proxy counts. */
export function clientFacts(request: IncomingMessage, proxies: TrustedProxies): ClientFacts {
  const peer = peerAddress(request.socket);
  const isTls = (request.socket as { readonly encrypted?: boolean }).encrypted === true;
  if (!proxies.has(peer)) {
    return { address: peer, isLoopback: isLoopbackAddress(peer) && !isHandedOn(request), isSecure: isTls };
  }
  const address = forwardedFor(request, proxies, peer);
  return {
    address,
    isLoopback: isLoopbackAddress(address) && address !== peer,
    // A trusted proxy without X-Forwarded-Proto is taken to have received the request over TLS (decision D2).
    isSecure: lastItem(request.headers["x-forwarded-proto"])?.toLowerCase() !== "http",
  };
}

/** The address of the connection's peer. */
export function peerAddress(socket: KnownSocket): string {
  // Cached on the socket: it stays the same while the connection lasts, and every request asks for it.
  socket[PEER] ??= plainAddress(socket.remoteAddress ?? "");
  return socket[PEER];
}

const PEER = Symbol("peer address");

interface KnownSocket {
  readonly remoteAddress?: string | undefined;
  [PEER]?: string;
}

function forwardedFor(request: IncomingMessage, proxies: TrustedProxies, peer: string): string {
  const hops = textOf(request.headers["x-forwarded-for"]).split(",");
  let address = peer;
  for (const hop of hops.toReversed()) {
    const candidate = plainAddress(hop.trim());
    // An entry that is no address comes from an untrusted sender, so the hop before it is the last one known.
    if (isIP(candidate) === 0) return address;
    address = candidate;
    if (!proxies.has(candidate)) return address;
  }
  return address;
}

/**
 * True for requests that a proxy forwarded: through a local untrusted proxy every client seems to be local.
 */
function isHandedOn(request: IncomingMessage): boolean {
  const { headers } = request;
  return ["forwarded", "x-forwarded-for", "x-real-ip", "via"].some((name) => headers[name] !== undefined);
}

/** Strips the IPv6 form of an IPv4 address, brackets, ports, and zones. */
function plainAddress(text: string): string {
  const host = /^\[(.*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  const bare = host.split("%", 1)[0] ?? "";
  const place = networkOf(bare);
  return place.includes("/") ? bare : place;
}

function lastItem(header: string | string[] | undefined): string | undefined {
  return textOf(header).split(",").at(-1)?.trim();
}

function textOf(header: string | string[] | undefined): string {
  return header === undefined ? "" : typeof header === "string" ? header : header.join(",");
}
