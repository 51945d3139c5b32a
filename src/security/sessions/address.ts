// Canonical peer addresses, so that a client has the same address on every kind of socket (C-04).

/** As compressIpv6 writes it: never with dots. */
const IPV4_MAPPED = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/;

/**
 * Returns the canonical text of a peer's IP address: IPv4-mapped IPv6 becomes IPv4, a zone is cut off, IPv6
 * is lower-cased and compressed. Any other text is trimmed and lower-cased, so that it equals only itself
 * (decision T22).
 */
export function normalizeAddress(address: string): string {
  if (!address.includes(":")) return address.trim().toLowerCase();
  const bare = address
    .replace(/%.*/s, "")
    .trim()
    .replace(/^\[|\]$/g, "")
    .toLowerCase();
  const compressed = compressIpv6(bare);
  const mapped = IPV4_MAPPED.exec(compressed);
  if (mapped === null) return compressed;
  const digits = mapped.slice(1).map((part) => part.padStart(4, "0"));
  return Buffer.from(digits.join(""), "hex").join(".");
}

/** The URL parser knows the one canonical form of an IPv6 address (WHATWG, RFC 5952). */
function compressIpv6(address: string): string {
  const url = URL.parse(`http://[${address}]/`);
  return url === null ? address : url.hostname.slice(1, -1);
}
