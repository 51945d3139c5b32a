// The security headers of the console's responses: helmet's defaults and a content policy for its pages.

/** Allows only what the pages need. `upgrade-insecure-requests` would break them over plain HTTP. */
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

/** Headers for pages only: they mean nothing for JSON and would be a third of a short response. */
const OF_PAGES: Readonly<Record<string, string>> = {
  "cross-origin-opener-policy": "same-origin",
  "origin-agent-cluster": "?1",
  "x-dns-prefetch-control": "off",
  "x-download-options": "noopen",
  "x-permitted-cross-domain-policies": "none",
  "x-xss-protection": "0",
};

/** Headers of responses at a path. HSTS covers this host only: its subdomains may be other services. */
export function securityHeaders(path: string, isTls: boolean): Readonly<Record<string, string>> {
  return {
    ...OF_EVERY_ANSWER,
    ...(isTls ? { "strict-transport-security": "max-age=31536000" } : {}),
    ...(path.startsWith("/api/") ? {} : OF_PAGES),
  };
}
