// HTTP Basic (RFC 7617): what somebody signs in with at /dav/.
import { hash } from "node:crypto";

/** Characters of an Authorization header. */
const HEADER_MAX_LENGTH = 1_024;

/** Made once: to make one costs more than a small file's whole way through a door's own code. */
const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** A name and a secret as they were sent. */
export interface BasicCredentials {
  /** The e-mail address; empty, and so wrong, where a program sends none. */
  readonly username: string;
  readonly password: string;
  /** Stands for both in memory; the secret cannot be told from it. */
  readonly fingerprint: string;
}

/** The credentials in an Authorization header; undefined for another scheme or form. */
export function readBasic(header: string | undefined): BasicCredentials | undefined {
  if (header === undefined || header.length > HEADER_MAX_LENGTH) return undefined;
  const encoded = /^basic +([a-z0-9+/_-]+={0,2})$/iu.exec(header.trim())?.[1];
  if (encoded === undefined) return undefined;
  let text: string;
  try {
    text = UTF8.decode(Buffer.from(encoded, "base64"));
  } catch {
    return undefined;
  }
  const colon = text.indexOf(":");
  // Control characters are in no name and in no secret (RFC 7617, section 2).
  if (colon === -1 || /\p{Cc}/u.test(text)) return undefined;
  const [username, password] = [text.slice(0, colon), text.slice(colon + 1)];
  // At once: an object of Node for each hash costs three times as much as the hash.
  return { username, password, fingerprint: hash("sha256", text, "base64") };
}
