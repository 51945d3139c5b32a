// The headers by which the console tells browsers what its pages may do: helmet's defaults, and a policy of content for these pages alone.

/** Only what the pages need. `upgrade-insecure-requests` is left out: it would break them over plain HTTP. */
const CONTENT_POLICY = [
  "default-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "form-action 'self'",
].join(";");

const OF_EVERY_ANSWER: Readonly<Record<string, string>> = {
  "content-security-policy": CONTENT_POLICY,
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

/** They mean nothing for JSON, and would be a third of a short answer. */
const OF_PAGES: Readonly<Record<string, string>> = {
  "cross-origin-opener-policy": "same-origin",
  "origin-agent-cluster": "?1",
  "x-dns-prefetch-control": "off",
  "x-download-options": "noopen",
  "x-permitted-cross-domain-policies": "none",
  "x-xss-protection": "0",
};

/** The headers of answers at a path. HSTS is for this name alone: other services of the domain are not ours to speak for. */
export function securityHeaders(path: string, isTls: boolean): Readonly<Record<string, string>> {
  return {
    ...OF_EVERY_ANSWER,
    ...(isTls ? { "strict-transport-security": "max-age=31536000" } : {}),
    ...(path.startsWith("/api/") ? {} : OF_PAGES),
  };
}
