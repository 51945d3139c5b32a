// Groups addresses into places for rate limits: one IPv4 address, or the /64 of an IPv6 address.

/**
 * The place of an address, as text for comparison: rate limits count places, since one machine has a whole
 * /64. An IPv4 address stands for itself, also in its IPv6 form; other text stands for itself too (decision
 * D17).
 */
export function networkOf(address: string): string {
  const groups = groupsOf(address);
  if (typeof groups === "string") return groups;
  return `${groups.slice(0, GROUPS / 2).join(":")}::/64`;
}

/**
 * The network of a place, as text for comparison: the /24 of an IPv4 address, the /48 of an IPv6 one. A
 * customer who rents one place easily has all of these. Other text stands for itself.
 */
export function widerNetworkOf(address: string): string {
  const groups = groupsOf(address);
  if (typeof groups !== "string") return `${groups.slice(0, 3).join(":")}::/48`;
  return /^\d{1,3}(?:\.\d{1,3}){3}$/.test(groups)
    ? `${groups.slice(0, groups.lastIndexOf("."))}.0/24`
    : groups;
}

/**
 * The groups of an IPv6 address; the text of an IPv4 address (also from its IPv6 form) and of anything else.
 */
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

/** True for an IPv4 or IPv6 address of this machine itself; names are not resolved. */
export function isLoopbackAddress(address: string): boolean {
  return address === "::1" || /^127(?:\.\d{1,3}){3}$/.test(address);
}
