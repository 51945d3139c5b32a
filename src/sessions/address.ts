// Peer addresses in one form, so that the same client is the same address on every kind of socket (C-04).

const IPV4_MAPPED = /^::ffff:(?:(\d{1,3}(?:\.\d{1,3}){3})|([0-9a-f]{1,4}):([0-9a-f]{1,4}))$/;

/**
 * Returns the canonical text of a peer's IP address: IPv4-mapped IPv6 becomes IPv4, a zone is cut off, IPv6 is lower-cased and
 * compressed. What is no address comes back trimmed and lower-cased, so that it still only equals itself (decision T22).
 */
export function normalizeAddress(address: string): string {
  if (!address.includes(":")) return address.trim().toLowerCase();
  const bare = (address.split("%", 1)[0] ?? "")
    .trim()
    .replace(/^\[|\]$/g, "")
    .toLowerCase();
  const mapped = IPV4_MAPPED.exec(compressIpv6(bare));
  if (mapped === null) return compressIpv6(bare);
  if (mapped[1] !== undefined) return mapped[1];
  const high = Number.parseInt(mapped[2] ?? "0", 16);
  const low = Number.parseInt(mapped[3] ?? "0", 16);
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
}

/** The URL parser knows the one canonical form of an IPv6 address (WHATWG, RFC 5952). */
function compressIpv6(address: string): string {
  const url = URL.parse(`http://[${address}]/`);
  return url === null ? address : url.hostname.slice(1, -1);
}
