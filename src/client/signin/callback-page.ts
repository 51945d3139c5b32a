// The pages that end a sign-in in the browser: self-contained, without scripts, everything escaped.
import { hash } from "node:crypto";

const STYLE =
  "body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:20vh auto;padding:0 1rem;color:#222;background:#fff}" +
  "@media(prefers-color-scheme:dark){body{color:#ddd;background:#1a1a1a}}";

/** Headers of every answer: only the own style loads, no cache, no frames (failure C-08). */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy":
    `default-src 'none'; style-src 'sha256-${hash("sha256", STYLE, "base64")}'; ` +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  connection: "close",
};

/** A page with a heading and a sentence. */
export function callbackPage(title: string, sentence: string): string {
  return (
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Grove: ${escapeHtml(title)}</title>` +
    `<meta name="viewport" content="width=device-width"><style>${STYLE}</style></head>` +
    `<body><main><h1>${escapeHtml(title)}</h1><p>${escapeHtml(sentence)}</p></main></body></html>\n`
  );
}

/** Text for HTML, in elements and in quoted attributes. */
export function escapeHtml(text: string): string {
  const entities: Readonly<Record<string, string>> = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "'": "&#39;",
  };
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? character);
}
