// Limits nodes' addresses, so that the metadata store cannot lead connections elsewhere (M-04).
import { BlockList, isIP } from "node:net";
import { GroveError } from "#base/errors.ts";

/** Blocks of addresses that -allow_nodes takes. */
export const ALLOWED_NETWORKS_MAX = 64;

/** A block of addresses, in CIDR address/length. */
type Network = readonly [address: string, length: number];

/**
 * Blocks that are never a node's, whatever operators allow: cloud metadata services, link-local, multicast,
 * reserved and translated addresses.
 */
const NEVER: Readonly<Record<string, readonly Network[]>> = {
  "an address of a metadata service": [
    ["169.254.169.254", 32],
    ["100.100.100.200", 32],
    ["168.63.129.16", 32],
    ["192.0.0.192", 32],
    ["fd00:ec2::254", 128],
    ["fd20:ce::254", 128],
  ],
  "a link-local address": [
    ["169.254.0.0", 16],
    ["fe80::", 10],
    ["fec0::", 10],
  ],
  "a multicast address": [
    ["224.0.0.0", 4],
    ["ff00::", 8],
  ],
  "a reserved address": [
    ["0.0.0.0", 8],
    ["192.0.0.0", 24],
    ["240.0.0.0", 4],
    ["::", 128],
  ],
  "an address that stands for another": [
    ["64:ff9b::", 96],
    ["64:ff9b:1::", 48],
    ["2001::", 32],
    ["2002::", 16],
  ],
};
const LOOPBACK: readonly Network[] = [
  ["127.0.0.0", 8],
  ["::1", 128],
];

/** The addresses that nodes may have. */
export class NodeNetworks {
  readonly #never = Object.entries(NEVER).map(([what, networks]) => ({ what, list: blockList(networks) }));
  readonly #loopback = blockList(LOOPBACK);
  readonly #allowed: BlockList | undefined;
  readonly #allowedLoopback: BlockList;

  /**
   * Takes at most 64 blocks such as `10.0.0.0/8`, `fd12::/16` or a single address; without any, every
   * possible node address is allowed. The machine's own loopback needs a block inside it. Throws BAD_ARGUMENT
   * for an invalid block.
   */
  constructor(allowed: readonly string[] = []) {
    if (allowed.length > ALLOWED_NETWORKS_MAX) {
      throw new GroveError("BAD_ARGUMENT", `-allow_nodes takes at most ${ALLOWED_NETWORKS_MAX} blocks`);
    }
    const networks = allowed.map(parseNetwork);
    const isOwn = ([address, length]: Network): boolean =>
      isIP(address) === 4
        ? length >= 8 && has(this.#loopback, address)
        : length === 128 && has(this.#loopback, address);
    this.#allowedLoopback = blockList(networks.filter(isOwn));
    this.#allowed =
      networks.length === 0 ? undefined : blockList(networks.filter((network) => !isOwn(network)));
  }

  /** Says why an IP address cannot be a node's; undefined when it can. */
  problemOf(ip: string): string | undefined {
    if (isIP(ip) === 0 || ip.includes("%")) return "it is no IP address";
    for (const { what, list } of this.#never)
      if (has(list, ip)) return `${ip} is ${what}, which -allow_nodes cannot allow`;
    if (has(this.#loopback, ip)) {
      if (has(this.#allowedLoopback, ip)) return undefined;
      return `${ip} is this machine's own loopback; -allow_nodes 127.0.0.0/8 allows nodes there`;
    }
    if (this.#allowed === undefined || has(this.#allowed, ip)) return undefined;
    return `${ip} is in no block that -allow_nodes names; naming ${ip} there allows it`;
  }
}

function has(list: BlockList, ip: string): boolean {
  // IPv4 addresses in IPv6 form are checked by the rules for IPv4.
  return list.check(ip, isIP(ip) === 6 ? "ipv6" : "ipv4");
}

function blockList(networks: readonly Network[]): BlockList {
  const list = new BlockList();
  for (const [address, length] of networks) {
    list.addSubnet(address, length, isIP(address) === 6 ? "ipv6" : "ipv4");
  }
  return list;
}

function parseNetwork(text: string): Network {
  const [address = "", length, ...more] = text.trim().split("/");
  const family = isIP(address);
  const longest = family === 6 ? 128 : 32;
  const bits = length === undefined ? longest : Number(length);
  const isLength = length === undefined || /^\d{1,3}$/.test(length);
  if (family === 0 || address.includes("%") || more.length > 0 || !isLength || bits > longest) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "-allow_nodes takes blocks of addresses such as 10.0.0.0/8, with commas between",
    );
  }
  return [address, bits];
}
