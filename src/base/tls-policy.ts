// TLS versions, cipher suites and groups of Grove's listeners and internal channels, best first.
import { constants } from "node:crypto";

/**
 * Authenticated encryption with forward secrecy; HTTP/2 forbids the rest of TLS 1.2 (RFC 9113, appendix A).
 */
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
 * X25519 before all other curves. The hybrid with ML-KEM stands first and is secure while either half is:
 * recorded traffic must stay closed to later quantum computers. Every client of HTTP/2 has P-256.
 */
const GROUPS: readonly string[] = ["X25519MLKEM768", "X25519", "prime256v1", "secp384r1"];

/** The policy as Node's TLS options. */
export interface TlsPolicy {
  readonly minVersion: "TLSv1.2";
  readonly ciphers: string;
  readonly ecdhCurve: string;
}

/**
 * For every listener and connection between processes of Grove; connections to others use Node's defaults.
 */
export const TLS_POLICY: TlsPolicy = {
  minVersion: "TLSv1.2",
  ciphers: SUITES.join(":"),
  ecdhCurve: GROUPS.join(":"),
};

/** The policy of a listener. */
export interface TlsListenerPolicy extends TlsPolicy {
  /** Its own order goes before the client's. */
  readonly honorCipherOrder: true;
  readonly secureOptions: number;
}

/** HTTP/2 forbids a second handshake on a connection (RFC 9113, 9.2.1): after one Node would read no more of it. */
export const TLS_LISTENER_POLICY: TlsListenerPolicy = {
  ...TLS_POLICY,
  honorCipherOrder: true,
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
};
