// The networks that this machine is in, and those in which the console may look for nodes.
import { type NetworkInterfaceInfo, networkInterfaces } from "node:os";
import { isLoopbackAddress } from "#base/network.ts";

/** The addresses of a machine by interface, as the system tells them. */
type Interfaces = ReturnType<typeof networkInterfaces>;

/** The addresses of this machine's interfaces, each with its network. */
export function ownAddresses(interfaces: Interfaces = networkInterfaces()): Map<string, string> {
  return new Map(allOf(interfaces).map(({ address, cidr }) => [address, networkOf(cidr ?? address)]));
}

/**
 * The networks of a name's addresses that are this machine's, with commas between; undefined where there are none.
 * Debian's /etc/hosts gives a machine's own name 127.0.1.1, where the console then finds the node beside it: for such
 * an address it is that, and all networks of IPv4 that lead to other machines.
 */
export function networksOf(
  addresses: readonly string[],
  interfaces: Interfaces = networkInterfaces(),
): string | undefined {
  const own = ownAddresses(interfaces);
  const loopback = addresses.filter(isLoopbackAddress);
  const outer = loopback.length === 0 ? [] : allOf(interfaces).filter(leadsOut);
  const networks = [...addresses, ...outer.map(({ address }) => address)].flatMap((address) =>
    isLoopbackAddress(address) ? [] : (own.get(address) ?? []),
  );
  return networks.length === 0 ? undefined : [...new Set([...networks, ...loopback])].join(",");
}

/** A remark where the name's address is of this machine alone, and none of the networks holds such addresses. */
export function remarkOnLoopback(
  name: string,
  addresses: readonly string[],
  networks: readonly string[],
): string[] {
  const [address] = addresses.filter(isLoopbackAddress);
  if (address === undefined || networks.some((network) => isLoopbackAddress(network.split("/", 1)[0] ?? "")))
    return [];
  return [
    `${name} is ${address} on this machine ('getent hosts ${name}'), and the console does not ask a node there: ` +
      `add ${address} to the networks, or give the name its other address in /etc/hosts`,
  ];
}

function allOf(interfaces: Interfaces): NetworkInterfaceInfo[] {
  return Object.values(interfaces).flatMap((list) => list ?? []);
}

function leadsOut({ internal, family, address }: NetworkInterfaceInfo): boolean {
  return !internal && family === "IPv4" && !address.startsWith("169.254.");
}

/** `10.0.0.0/24` from `10.0.0.7/24`; other lengths of IPv4 and all of IPv6 stay the address with its length. */
function networkOf(cidr: string): string {
  const match = /^(\d+)\.(\d+)\.(\d+)\.\d+\/(8|16|24)$/.exec(cidr);
  if (match === null) return cidr;
  const [, a, b, c, length] = match;
  return `${a}.${length === "8" ? 0 : b}.${length === "24" ? c : 0}.0/${length}`;
}
