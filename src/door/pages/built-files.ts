// The built files of web/files, read at the start: few and small beside the process, so that a door needs no other file later.
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { PageExchange } from "#door/http/pages.ts";
import { headerOf } from "#door/webdav/conditions.ts";

/** Folders of the built page: beside the program in a package, in dist/ of a clone. */
const FOLDERS: readonly string[] = ["../../files/", "../../../dist/files/"].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
);
const YEAR_SECONDS = 31_536_000;

const TYPES: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  mjs: "text/javascript; charset=utf-8",
  json: "application/manifest+json",
  svg: "image/svg+xml",
};

/** Headers of the page and its files. Pictures, audio and video of users come from this origin, as <img> and <video>. */
const HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "media-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join(";"),
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "same-origin",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

interface BuiltFile {
  readonly bytes: Buffer;
  readonly brotli: Buffer | undefined;
  readonly type: string;
  readonly caching: string;
}

/** Files by address; "/" is the page. */
export type BuiltFiles = ReadonlyMap<string, BuiltFile>;

/** Reads them; none in a clone without a build. */
export async function readBuiltFiles(): Promise<BuiltFiles> {
  const folder = FOLDERS.find((path) => existsSync(`${path}index.html`));
  const files = new Map<string, BuiltFile>();
  if (folder === undefined) return files;
  for (const name of await readdir(folder, { recursive: true })) {
    const type = TYPES[/\.([a-z]+)$/u.exec(name)?.[1] ?? ""];
    if (type === undefined) continue;
    const path = join(folder, name);
    const packed = `${path}.br`;
    files.set(name === "index.html" ? "/" : `/${name}`, {
      bytes: await readFile(path),
      brotli: existsSync(packed) ? await readFile(packed) : undefined,
      type,
      caching: name.startsWith("assets/") ? `max-age=${YEAR_SECONDS}, immutable` : "no-cache",
    });
  }
  return files;
}

/** Answers with one of them; false where there is none. */
export function sendBuiltFile(exchange: PageExchange, files: BuiltFiles): boolean {
  const { method, path } = exchange;
  const file = files.get(path);
  if (file === undefined || (method !== "GET" && method !== "HEAD")) return false;
  const isPacked = takesBrotli(headerOf(exchange.headers, "accept-encoding") ?? "");
  const body = isPacked ? (file.brotli ?? file.bytes) : file.bytes;
  for (const [name, value] of Object.entries(HEADERS)) exchange.setHeader(name, value);
  exchange.setHeader("content-type", file.type);
  exchange.setHeader("cache-control", file.caching);
  exchange.setHeader("vary", "accept-encoding");
  if (body !== file.bytes) exchange.setHeader("content-encoding", "br");
  exchange.setHeader("content-length", body.length);
  exchange.statusCode = 200;
  exchange.end(method === "HEAD" ? undefined : body);
  return true;
}

/** Whether an Accept-Encoding names brotli, and not with a weight of zero (RFC 9110, section 12.5.3). */
export function takesBrotli(accepted: string): boolean {
  return accepted
    .split(",")
    .some((coding) => /^br\s*(?:;\s*q\s*=\s*(?!0(?:\.0*)?$).*)?$/iu.test(coding.trim()));
}
