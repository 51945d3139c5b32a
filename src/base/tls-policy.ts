// How Grove speaks TLS: which versions, suites and groups its listeners and the channels between its processes take, best first.

/** Authenticated encryption under keys that nobody can work out afterwards, and nothing else: HTTP/2 forbids the rest of TLS 1.2 (RFC 9113, appendix A). */
const SUITES: readonly string[] = [
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
  "TLS_AES_128_GCM_SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
];

/**
 * X25519 before all other curves. The hybrid with ML-KEM stands before it, and holds as long as either of its halves does: what somebody
 * records today must stay closed to the computers of later years. P-256 is what every client of HTTP/2 has.
 */
const GROUPS: readonly string[] = ["X25519MLKEM768", "X25519", "prime256v1", "secp384r1"];

/** What both sides of a connection take, as Node's TLS options. */
export interface TlsPolicy {
  readonly minVersion: "TLSv1.2";
  readonly ciphers: string;
  readonly ecdhCurve: string;
}

/** For every listener, and for every connection from one process of Grove to another; others' servers may speak what Node speaks. */
export const TLS_POLICY: TlsPolicy = {
  minVersion: "TLSv1.2",
  ciphers: SUITES.join(":"),
  ecdhCurve: GROUPS.join(":"),
};

/** The same for a listener, whose own order counts and not the client's. */
export const TLS_LISTENER_POLICY: TlsPolicy & { readonly honorCipherOrder: true } = {
  ...TLS_POLICY,
  honorCipherOrder: true,
};
