// Between the path of a URL and the names of a tree: decoded exactly once, refused where it could mean two things.
import { GroveError } from "#base/errors.ts";
import { canonicalName } from "#base/names.ts";

/** Bytes of a path as the client writes it. */
const HREF_MAX_BYTES = 12_288;

const ENCODED_SLASH_OR_NUL = /%(?:2f|00)/iu;
/** Nothing that is encoded: nearly all names. */
const PLAIN = /^[A-Za-z0-9\-._~!$'()*+,;=:@]*$/u;
const NOT_PLAIN = /[^A-Za-z0-9\-._~!$'()*+,;=:@]/gu;

/** All that an address may consist of (RFC 3986, section 2). */
const PRINTABLE_ASCII = /^[\x21-\x7e]*$/u;

/** A path of a URL below the prefix, taken apart. */
export interface ReadHref {
  readonly path: readonly string[];
  /** True where it ended in "/", as those of collections do. */
  readonly hasSlash: boolean;
}

/**
 * The names in the path of a URL. Throws BAD_ARGUMENT or BAD_NAME for what is not encoded, an encoded slash or NUL, dot
 * segments, bad UTF-8 or empty segments in the middle.
 */
export function readHref(path: string, prefix: string): ReadHref {
  if (path.length > HREF_MAX_BYTES) throw new GroveError("BAD_ARGUMENT", "the path is too long");
  if (path !== prefix && !path.startsWith(`${prefix}/`)) {
    throw new GroveError("BAD_ARGUMENT", `a path starts with ${prefix}/`);
  }
  requireEncoded(path, "the path");
  const rest = path.slice(prefix.length);
  if (ENCODED_SLASH_OR_NUL.test(rest)) {
    throw new GroveError("BAD_NAME", 'bad name: a name cannot hold "/" or NUL');
  }
  const hasSlash = rest === "" || rest.endsWith("/");
  const trimmed = rest.replace(/^\//u, "").replace(/\/$/u, "");
  return { path: trimmed === "" ? [] : trimmed.split("/").map(decodedName), hasSlash };
}

/**
 * Throws BAD_ARGUMENT for an address with spaces or letters outside of ASCII. HTTP reads each of their bytes as a letter
 * of Latin-1, so that they would name something else.
 */
export function requireEncoded(address: string, what: string): void {
  if (PRINTABLE_ASCII.test(address)) return;
  throw new GroveError(
    "BAD_ARGUMENT",
    `${what} has spaces or letters outside of ASCII: percent-encode their UTF-8`,
  );
}

/** The path of a URL for names: each name encoded, "/" behind a collection. */
export function hrefOf(prefix: string, path: readonly string[], isCollection: boolean): string {
  const names = path.map((name) => `/${encodedName(name)}`).join("");
  return `${prefix}${names}${isCollection ? "/" : ""}`;
}

/** A name in the path of a URL. */
export function encodedName(name: string): string {
  if (PLAIN.test(name)) return name;
  // "&", "<" and their like are encoded too, so that an address needs no other care in XML or HTML.
  return name.replace(NOT_PLAIN, (letter) =>
    letter.length === 1 && letter < "\u0080" ? percent(letter) : encodeURIComponent(letter),
  );
}

function percent(letter: string): string {
  return `%${letter.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
}

function decodedName(segment: string): string {
  if (PLAIN.test(segment)) return canonicalName(segment);
  let name: string;
  try {
    name = decodeURIComponent(segment);
  } catch {
    throw new GroveError("BAD_NAME", "bad name: the path is not valid percent-encoded UTF-8");
  }
  return canonicalName(name);
}
