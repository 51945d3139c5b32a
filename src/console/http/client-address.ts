// Where a request comes from: the peer of the connection, or what a trusted proxy says of it (C-04), and whether it came over TLS.
import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";
import type { TLSSocket } from "node:tls";
import { GroveError } from "#base/errors.ts";
import { isLoopbackAddress, networkOf } from "#base/network.ts";

/** What the console makes of the connection that a request came on. */
export interface ClientFacts {
  /** The client's address; an IPv4 address never in its IPv6 form. */
  readonly address: string;
  /** True for a process of this machine, unless the request says that somebody has handed it on. */
  readonly isLoopback: boolean;
  /** True when nobody on the way could have read it. */
  readonly isSecure: boolean;
}

/** Proxies whose X-Forwarded-For and X-Forwarded-Proto are believed. */
export class TrustedProxies {
  readonly #list = new BlockList();
  readonly #isEmpty: boolean;

  /** Takes addresses and networks (`10.0.0.1`, `10.0.0.0/8`, `fd00::/8`). Throws BAD_ARGUMENT for anything else. */
  constructor(places: readonly string[] = []) {
    this.#isEmpty = places.length === 0;
    for (const place of places) this.#add(place);
  }

  /** True for an address that is one of them. */
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

/** Reads where a request comes from; of X-Forwarded-For the right-most address that is no trusted proxy counts. */
export function clientFacts(request: IncomingMessage, proxies: TrustedProxies): ClientFacts {
  const peer = peerAddress(request.socket);
  const isTls = (request.socket as Partial<TLSSocket>).encrypted === true;
  if (!proxies.has(peer)) {
    return { address: peer, isLoopback: isLoopbackAddress(peer) && !isHandedOn(request), isSecure: isTls };
  }
  const address = forwardedFor(request, proxies, peer);
  return {
    address,
    isLoopback: isLoopbackAddress(address) && address !== peer,
    // Behind a proxy that says nothing of it the outer connection is taken to be encrypted (decision D2).
    isSecure: lastItem(request.headers["x-forwarded-proto"])?.toLowerCase() !== "http",
  };
}

/** The address at the other end of a connection. */
export function peerAddress(socket: KnownSocket): string {
  // The same for as long as the connection lasts, and asked for with every request on it.
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
    // Whatever is no address was written by somebody who is not trusted: the hop before it is all that is known.
    if (isIP(candidate) === 0) return address;
    address = candidate;
    if (!proxies.has(candidate)) return address;
  }
  return address;
}

/** A proxy on this machine that was not named as trusted makes the whole world look like this machine, unless one looks. */
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
