// What counts as one place on the network: an IPv4 address, or the /64 of an IPv6 one, of which a single machine has as many as it likes.

/**
 * The place behind an address, as text that is only to be compared: limits that count addresses count these. An IPv4 address stands for
 * itself, also in its IPv6 form; what is no address stands for itself too (decision D17).
 */
export function networkOf(address: string): string {
  const groups = groupsOf(address);
  if (typeof groups === "string") return groups;
  return `${groups.slice(0, GROUPS / 2).join(":")}::/64`;
}

/**
 * The network that a place lies in, as text that is only to be compared: the /24 of an IPv4 address, the /48 of an IPv6 one. Whoever rents
 * one place easily has all of these. What is no address stands for itself.
 */
export function widerNetworkOf(address: string): string {
  const groups = groupsOf(address);
  if (typeof groups !== "string") return `${groups.slice(0, 3).join(":")}::/48`;
  return /^\d{1,3}(?:\.\d{1,3}){3}$/.test(groups)
    ? `${groups.slice(0, groups.lastIndexOf("."))}.0/24`
    : groups;
}

/** The groups of an IPv6 address; the text itself of an IPv4 one, out of its IPv6 form, and of what is no address. */
function groupsOf(address: string): readonly string[] | string {
  if (!address.includes(":")) return address;
  const bare = address.split("%", 1)[0] ?? "";
  const url = URL.parse(`http://[${bare}]/`);
  if (url === null) return address;
  const [left = "", right] = url.hostname.slice(1, -1).split("::");
  const groups = left === "" ? [] : left.split(":");
  if (right !== undefined) {
    const tail = right === "" ? [] : right.split(":");
    while (groups.length + tail.length < GROUPS) groups.push("0");
    groups.push(...tail);
  }
  if (groups.slice(0, 5).every((group) => group === "0") && groups[5] === "ffff") {
    const [high = 0, low = 0] = groups.slice(6).map((group) => Number.parseInt(group, 16));
    return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
  }
  return groups;
}

/** An IPv6 address has eight groups of 16 bits. */
const GROUPS = 8;

/** True for an address of this machine itself, IPv4 or IPv6; for addresses, not for names. */
export function isLoopbackAddress(address: string): boolean {
  return address === "::1" || /^127(?:\.\d{1,3}){3}$/.test(address);
}
