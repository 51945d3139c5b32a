// Live properties: those whose values the door computes (RFC 4918 section 15, RFC 4331).
import { httpDate, secondText } from "./date-text.ts";
import type { PropertyName } from "./request-bodies.ts";
import type { DavLock, DavResource } from "./resource.ts";
import { escapedXml } from "./xml-text.ts";

/** What live properties' values are made from, beside the resource. */
export interface PropertySource {
  readonly hrefOf: (path: readonly string[], isCollection: boolean) => string;
  readonly quota: { readonly available: number; readonly used: number } | undefined;
}

type Value = (resource: DavResource, source: PropertySource) => string | undefined;

const QUOTA_NAMES = new Set(["quota-available-bytes", "quota-used-bytes"]);

const SUPPORTED_LOCKS = ["exclusive", "shared"]
  .map(
    (scope) =>
      `<D:lockentry><D:lockscope><D:${scope}/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockentry>`,
  )
  .join("");

const VALUES: Readonly<Record<string, Value>> = {
  creationdate: ({ createdMs }) => secondText(createdMs),
  displayname: ({ path }) => escapedXml(path.at(-1) ?? "Grove"),
  getcontentlength: ({ isCollection, size }) => (isCollection ? undefined : String(size)),
  getcontenttype: (resource) => (resource.isCollection ? undefined : contentTypeOf(resource)),
  getetag: ({ isCollection, etag }) => (isCollection ? undefined : `"${escapedXml(etag)}"`),
  getlastmodified: ({ changedMs }) => httpDate(changedMs),
  lockdiscovery: ({ locks }, { hrefOf }) => locks.map((lock) => activeLock(lock, hrefOf)).join(""),
  resourcetype: ({ isCollection }) => (isCollection ? "<D:collection/>" : ""),
  supportedlock: () => SUPPORTED_LOCKS,
  "quota-available-bytes": ({ isCollection }, { quota }) =>
    isCollection ? quota && String(quota.available) : undefined,
  "quota-used-bytes": ({ isCollection }, { quota }) =>
    isCollection ? quota && String(quota.used) : undefined,
};

/** True for a property that nobody can set. */
export function isLive({ namespace, name }: PropertyName): boolean {
  return namespace === "DAV:" && Object.hasOwn(VALUES, name);
}

/** True for a property that needs the quota. */
export function needsQuota({ namespace, name }: PropertyName): boolean {
  return namespace === "DAV:" && QUOTA_NAMES.has(name);
}

/** A live property's element as XML; undefined where the resource has none. */
export type LiveProperty = (resource: DavResource, source: PropertySource) => string | undefined;

/** The live property of a name; undefined for another name. A listing asks for it once. */
export function liveProperty({ namespace, name }: PropertyName): LiveProperty | undefined {
  const valueOf = namespace === "DAV:" && Object.hasOwn(VALUES, name) ? VALUES[name] : undefined;
  if (valueOf === undefined) return undefined;
  const [start, end, empty] = [`<D:${name}>`, `</D:${name}>`, `<D:${name}/>`];
  return (resource, source) => {
    const value = valueOf(resource, source);
    if (value === undefined) return undefined;
    return value === "" ? empty : start + value + end;
  };
}

const TOLD_NAMES = Object.keys(VALUES).filter((name) => !QUOTA_NAMES.has(name));

/** The live properties; those of quota are left out of "all" (RFC 4331, section 2). */
export const LIVE_PROPERTIES: readonly LiveProperty[] = TOLD_NAMES.flatMap(
  (name) => liveProperty({ namespace: "DAV:", name }) ?? [],
);

/** The same without their values. */
export const LIVE_PROPERTY_NAMES: readonly LiveProperty[] = LIVE_PROPERTIES.map((told, index) => {
  const empty = `<D:${TOLD_NAMES[index]}/>`;
  return (resource, source) => (told(resource, source) === undefined ? undefined : empty);
});

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
const TYPES: ReadonlyMap<string, string> = new Map(
  Object.entries({
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
  }),
);
/** Letters of the longest of them, and the dot. */
const ENDING_MAX_LENGTH = 5;

/** The media type of a file, by its name alone. */
export function contentTypeOf(resource: DavResource): string {
  const name = resource.path.at(-1) ?? "";
  const dot = name.lastIndexOf(".");
  const isKnown = dot !== -1 && name.length - dot <= ENDING_MAX_LENGTH;
  return (isKnown ? TYPES.get(name.slice(dot + 1).toLowerCase()) : undefined) ?? "application/octet-stream";
}
