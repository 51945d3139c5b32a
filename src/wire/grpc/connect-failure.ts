// Classifies failed connections and describes them in words, since TLS error codes mean little to users.
import { Code, StatusError } from "#wire/framing/status.ts";

/** Kinds of failures to connect; the last covers all others. */
export type ConnectFailureKind =
  | "refused"
  | "unknown-host"
  | "silent"
  | "closed"
  | "no-tls"
  | "no-http2"
  | "not-trusted"
  | "expired"
  | "not-yet-valid"
  | "wrong-name"
  | "stopping"
  | "other";

/** The cause of an UNAVAILABLE that no server has looked at: the call may be made again. */
export class ConnectFailure extends Error {
  override readonly name = "ConnectFailure";
  readonly kind: ConnectFailureKind;

  constructor(kind: ConnectFailureKind, message: string, cause: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
  }
}

const KINDS: Readonly<Record<string, ConnectFailureKind>> = {
  ECONNREFUSED: "refused",
  ENOTFOUND: "unknown-host",
  EAI_AGAIN: "unknown-host",
  ETIMEDOUT: "silent",
  EPROTO: "no-tls",
  ERR_HTTP2_ERROR: "no-http2",
  ERR_SSL_WRONG_VERSION_NUMBER: "no-tls",
  ERR_SSL_PACKET_LENGTH_TOO_LONG: "no-tls",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "not-trusted",
  UNABLE_TO_GET_ISSUER_CERT: "not-trusted",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "not-trusted",
  SELF_SIGNED_CERT_IN_CHAIN: "not-trusted",
  DEPTH_ZERO_SELF_SIGNED_CERT: "not-trusted",
  CERT_SIGNATURE_FAILURE: "not-trusted",
  CERT_UNTRUSTED: "not-trusted",
  CERT_HAS_EXPIRED: "expired",
  CERT_NOT_YET_VALID: "not-yet-valid",
  ERR_TLS_CERT_ALTNAME_INVALID: "wrong-name",
};

/** Classifies the error of an attempt to connect; without an error the peer closed before any HTTP/2. */
export function connectFailure(
  error: NodeJS.ErrnoException | undefined,
  attempt: { readonly isTls: boolean; readonly timedOut: boolean },
): ConnectFailure {
  const code = error?.code ?? "";
  const kind = kindOf(error, code, attempt);
  const text = TEXTS[kind];
  const closed = attempt.isTls ? "it closed the connection" : "it closed the connection; it may expect TLS";
  const message = kind === "closed" ? closed : text === undefined ? code || (error?.message ?? "") : text;
  return new ConnectFailure(kind, code === "" || kind === "other" ? message : `${message} (${code})`, error);
}

const TEXTS: Readonly<Partial<Record<ConnectFailureKind, string>>> = {
  refused: "nothing listens there",
  "unknown-host": "nobody knows that name",
  silent: "it does not answer",
  "no-tls": "it does not speak TLS",
  "no-http2": "it does not speak HTTP/2 as it should",
  "not-trusted": "its certificate is of an authority that is not trusted here",
  expired: "its certificate has expired",
  "not-yet-valid": "its certificate is not valid yet",
  "wrong-name": "its certificate is for other names than this one",
  stopping: "it takes no more calls, as a server that stops",
};

/** The status of a call that a server has refused without a look at it (RFC 9113, section 8.7). */
export function refusedUnseen(): StatusError {
  const cause = new ConnectFailure("stopping", TEXTS.stopping ?? "", undefined);
  return new StatusError(Code.UNAVAILABLE, cause.message, { cause });
}

function kindOf(
  error: Error | undefined,
  code: string,
  attempt: { readonly isTls: boolean; readonly timedOut: boolean },
): ConnectFailureKind {
  if (attempt.timedOut) return "silent";
  if (error === undefined) return "closed";
  // A reset in the handshake: the listener did not understand the greeting.
  if (code === "ECONNRESET") return "closed";
  return KINDS[code] ?? (code.startsWith("ERR_SSL_") ? "no-tls" : "other");
}
