// Live properties: those whose values the door computes (RFC 4918 section 15, RFC 4331).
import type { PropertyName } from "./request-bodies.ts";
import type { DavLock, DavResource } from "./resource.ts";
import { escapedXml } from "./xml-text.ts";

/** What a live property's value is made from. */
export interface PropertySource {
  readonly resource: DavResource;
  readonly hrefOf: (path: readonly string[], isCollection: boolean) => string;
  readonly quota: { readonly available: number; readonly used: number } | undefined;
}

type Value = (source: PropertySource) => string | undefined;

const QUOTA_NAMES = new Set(["quota-available-bytes", "quota-used-bytes"]);

const SUPPORTED_LOCKS = ["exclusive", "shared"]
  .map(
    (scope) =>
      `<D:lockentry><D:lockscope><D:${scope}/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockentry>`,
  )
  .join("");

const VALUES: Readonly<Record<string, Value>> = {
  creationdate: ({ resource }) => new Date(resource.createdMs).toISOString().replace(/\.\d+Z$/u, "Z"),
  displayname: ({ resource }) => escapedXml(resource.path.at(-1) ?? "Grove"),
  getcontentlength: ({ resource }) => (resource.isCollection ? undefined : String(resource.size)),
  getcontenttype: ({ resource }) => (resource.isCollection ? undefined : contentTypeOf(resource)),
  getetag: ({ resource }) => (resource.isCollection ? undefined : `"${escapedXml(resource.etag)}"`),
  getlastmodified: ({ resource }) => new Date(resource.changedMs).toUTCString(),
  lockdiscovery: ({ resource, hrefOf }) => resource.locks.map((lock) => activeLock(lock, hrefOf)).join(""),
  resourcetype: ({ resource }) => (resource.isCollection ? "<D:collection/>" : ""),
  supportedlock: () => SUPPORTED_LOCKS,
  "quota-available-bytes": ({ quota, resource }) =>
    resource.isCollection ? quota && String(quota.available) : undefined,
  "quota-used-bytes": ({ quota, resource }) =>
    resource.isCollection ? quota && String(quota.used) : undefined,
};

/** Names of the live properties; those of quota are left out of "all" (RFC 4331, section 2). */
export const LIVE_NAMES: readonly string[] = Object.keys(VALUES).filter((name) => !QUOTA_NAMES.has(name));

/** True for a property that nobody can set. */
export function isLive({ namespace, name }: PropertyName): boolean {
  return namespace === "DAV:" && Object.hasOwn(VALUES, name);
}

/** True for a property that needs the quota. */
export function needsQuota({ namespace, name }: PropertyName): boolean {
  return namespace === "DAV:" && QUOTA_NAMES.has(name);
}

/** A live property's element as XML; undefined where the resource has none. */
export function liveProperty(name: string, source: PropertySource): string | undefined {
  const value = VALUES[name]?.(source);
  if (value === undefined) return undefined;
  return value === "" ? `<D:${name}/>` : `<D:${name}>${value}</D:${name}>`;
}

/** One lock as XML (RFC 4918, section 14.1). */
export function activeLock(lock: DavLock, hrefOf: PropertySource["hrefOf"]): string {
  return [
    "<D:activelock><D:locktype><D:write/></D:locktype>",
    `<D:lockscope><D:${lock.scope}/></D:lockscope>`,
    `<D:depth>${lock.isDeep ? "infinity" : "0"}</D:depth>`,
    lock.owner === "" ? "" : `<D:owner>${lock.owner}</D:owner>`,
    `<D:timeout>Second-${lock.secondsLeft}</D:timeout>`,
    // Others than the holder see the lock, not its token.
    lock.token === "" ? "" : `<D:locktoken><D:href>${escapedXml(lock.token)}</D:href></D:locktoken>`,
    `<D:lockroot><D:href>${escapedXml(hrefOf(lock.root, false))}</D:href></D:lockroot></D:activelock>`,
  ].join("");
}

/** Media types by ending, for programs that ask; everything else is bytes. */
const TYPES: Readonly<Record<string, string>> = {
  csv: "text/csv; charset=utf-8",
  gif: "image/gif",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  json: "application/json",
  m4a: "audio/mp4",
  md: "text/markdown; charset=utf-8",
  mp3: "audio/mpeg",
  mp4: "video/mp4",
  ogg: "audio/ogg",
  pdf: "application/pdf",
  png: "image/png",
  txt: "text/plain; charset=utf-8",
  wav: "audio/wav",
  webm: "video/webm",
  webp: "image/webp",
  zip: "application/zip",
};

/** The media type of a file, by its name alone. */
export function contentTypeOf(resource: DavResource): string {
  const ending = /\.([a-z0-9]{1,8})$/iu.exec(resource.path.at(-1) ?? "")?.[1]?.toLowerCase() ?? "";
  return TYPES[ending] ?? "application/octet-stream";
}
