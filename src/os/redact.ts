// Takes secrets out of text before it is logged or shown (C-13).

const REDACTED = "[redacted]";

/** Each pattern with its replacement; the shapes are those of failures C-13. */
const SECRETS: readonly (readonly [RegExp, string])[] = [
  // Headers in every notation: raw, as JSON, as a header list.
  [
    /\b(authorization|x-admin-password-hash|proxy-authorization)(["']?\s*[:=,]\s*\[?["']?)(?:(?:bearer|basic)\s+)?[^\s"',\]]+/gi,
    `$1$2${REDACTED}`,
  ],
  [/\b((?:set-)?cookie)(["']?\s*[:=,]\s*\[?["']?)[^"'\r\n\]]+/gi, `$1$2${REDACTED}`],
  [/\b(bearer)\s+[^\s"',]+/gi, `$1 ${REDACTED}`],
  // Query strings and forms.
  [
    /\b(id_token|access_token|refresh_token|client_secret|code_verifier|svc_admin_token|token|password|passwd|secret)=[^&\s"'#;]+/gi,
    `$1=${REDACTED}`,
  ],
  [/([?&](?:code|state|nonce)=)[^&\s"'#]+/gi, `$1${REDACTED}`],
  [/(:\/\/[^/\s:@]*):[^@\s/]+@/g, `$1:${REDACTED}@`],
  // Tokens and hashes by their shape.
  [/sst_[A-Za-z0-9_-]{6,}/g, `sst_${REDACTED}`],
  [/gjt_[0-9A-Za-z._-]{6,}/g, `gjt_${REDACTED}`],
  [/mock-jwt\.[^\s"',]*/gi, `mock-jwt.${REDACTED}`],
  [/(?:ey[JA]|ew[o0])[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)*/g, "[redacted jwt]"],
  [/\$argon2(?:id?|d)\$[^\s"']+/g, "[redacted argon2]"],
  [/(?<![0-9a-f])[0-9a-f]{64,}(?![0-9a-f])/gi, "[redacted hex]"],
];

/** Names of fields that always hold a secret. */
const SECRET_FIELD =
  /(?:token|password|passwd|secret|authorization|cookie|credential|verifier|private_?key|_hash|Hash)$/i;

/** Returns the text with every likely token, hash or password replaced. */
export function redactSecrets(text: string): string {
  let clean = text;
  for (const [pattern, replacement] of SECRETS) clean = clean.replace(pattern, replacement);
  return clean;
}

/** True for a field whose value is never logged. */
export function isSecretField(name: string): boolean {
  return SECRET_FIELD.test(name);
}
