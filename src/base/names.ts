// Rules and canonical forms of names, paths and usernames (decision D13).
import { GroveError } from "./errors.ts";
import { NAME_MAX_BYTES, PATH_MAX_BYTES, USERNAME_MAX_LENGTH } from "./limits.ts";

/** C0 and C1 controls, DEL, the slash and the replacement character that broken decoders leave behind. */
const FORBIDDEN_IN_NAME = /[\u0000-\u001f\u007f-\u009f/\ufffd]/u;
const ASCII_ONLY = /^[\u0020-\u007e]*$/;

/**
 * Returns the canonical (NFC) form of a name: 1 to 255 bytes of UTF-8 and not "." or "..". It has no "/",
 * control character, U+FFFD or lone surrogate. Throws BAD_NAME (decision D13).
 */
export function canonicalName(name: string): string {
  const problem = nameProblem(name);
  if (problem !== undefined) throw new GroveError("BAD_NAME", `bad name: ${problem}`);
  return ASCII_ONLY.test(name) ? name : name.normalize("NFC");
}

/** The problem of a name in words; undefined for a good one. */
export function nameProblem(name: string): string | undefined {
  if (name === "") return "a name cannot be empty";
  if (name === "." || name === "..") return '"." and ".." are not names';
  if (FORBIDDEN_IN_NAME.test(name)) return 'a name cannot hold "/", control characters or U+FFFD';
  if (!name.isWellFormed()) return "a name must be well-formed Unicode";
  // What is kept is measured: macOS sends decomposed names, which have more bytes.
  const bytes = ASCII_ONLY.test(name) ? name.length : Buffer.byteLength(name.normalize("NFC"));
  return bytes > NAME_MAX_BYTES ? `a name has at most ${NAME_MAX_BYTES} bytes` : undefined;
}

/**
 * Splits an absolute path inside a root into canonical names; "/" has none, and one trailing "/" is ignored.
 * Throws BAD_NAME for a bad name. Throws BAD_ARGUMENT for a relative path, empty names or more than 4096
 * bytes (decision D13).
 */
export function splitPath(path: string): string[] {
  if (!path.startsWith("/")) throw new GroveError("BAD_ARGUMENT", 'a path starts with "/"');
  if (path.length * 3 > PATH_MAX_BYTES && Buffer.byteLength(path) > PATH_MAX_BYTES) {
    throw new GroveError("BAD_ARGUMENT", `a path has at most ${PATH_MAX_BYTES} bytes`);
  }
  if (path === "/") return [];
  const names = (path.endsWith("/") ? path.slice(1, -1) : path.slice(1)).split("/");
  return names.map(canonicalName);
}

/** Joins canonical names to an absolute path. */
export function joinPath(names: readonly string[]): string {
  return `/${names.join("/")}`;
}

function foldedUsername(email: string): string {
  for (const letter of email) {
    if (!isFoldedSafely(letter)) {
      const code = (letter.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
      throw new GroveError(
        "BAD_ARGUMENT",
        `a username cannot hold the letter U+${code}, which in lower case is another letter`,
      );
    }
  }
  return email.normalize("NFC").toLowerCase().normalize("NFC");
}

/** True for a letter in canonical form whose lower case is itself or maps back to it. */
function isFoldedSafely(letter: string): boolean {
  const lower = letter.toLowerCase();
  return letter.normalize("NFC") === letter && (lower === letter || lower.toUpperCase() === letter);
}

/**
 * Lower-cases a username, which is a verified e-mail address (decision D21). Throws BAD_ARGUMENT for an
 * invalid one. Also refuses letters that lower case or NFC would turn into others, such as the Kelvin sign
 * into "k": two mailboxes must never be one user.
 */
export function canonicalUsername(email: string): string {
  const username = ASCII_ONLY.test(email) ? email.toLowerCase() : foldedUsername(email);
  const plausible =
    /^[^\s@:/\\\u0000-\u001f\u007f-\u009f\ufffd]+@[^\s@:/\\\u0000-\u001f\u007f-\u009f\ufffd]+$/u.test(
      username,
    );
  if (!plausible || username.length > USERNAME_MAX_LENGTH || !username.isWellFormed()) {
    throw new GroveError("BAD_ARGUMENT", "a username is an e-mail address");
  }
  return username;
}

/**
 * Length of the longest of the paths that cover a place, 0 for none. Paths that cover one place are prefixes
 * of each other.
 */
export function longestCovering(paths: readonly string[], place: string): number {
  return Math.max(0, ...paths.filter((path) => covers(path, place)).map((path) => path.length));
}

/** True for a path that is a place's own, or of a directory above it. */
export function covers(path: string, place: string): boolean {
  return path === "/" || place === path || place.startsWith(`${path}/`);
}
