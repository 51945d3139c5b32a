// Reads the claims of an ID token without verifying them: that is the servers' task.
import { canonicalUsername } from "#base/names.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { PASTE_MAX_LENGTH } from "#client/terminal/limits.ts";
import { MOCK_PREFIX } from "./mock-token.ts";
import { parseFields, type StoredFields } from "./stored-json.ts";

/** Claims of a token, unverified. */
export interface TokenClaims {
  /** Lower-cased e-mail address; undefined when the token names none. */
  readonly email: string | undefined;
  /** Wall time of its `exp`; undefined when it names none. */
  readonly expiresAtMs: number | undefined;
  readonly issuer: string | undefined;
  /** Its `aud`, several of a list with blanks between; empty when it names none. */
  readonly audience: string;
}

const NO_CLAIMS: TokenClaims = { email: undefined, expiresAtMs: undefined, issuer: undefined, audience: "" };

/** Reads the claims of an ID token or a mock token. Throws SIGN_IN_FAILED when it is neither. */
export function readClaims(token: string): TokenClaims {
  if (token.length > PASTE_MAX_LENGTH || !/^[\x21-\x7e]+$/.test(token)) throw notAToken();
  if (token.startsWith(MOCK_PREFIX)) return mockClaims(token.slice(MOCK_PREFIX.length));
  const parts = token.split(".");
  const fields = parts.length === 3 ? decode(parts[1] ?? "") : undefined;
  if (fields === undefined) throw notAToken();
  return claimsOf(fields);
}

function mockClaims(rest: string): TokenClaims {
  if (rest.includes("@")) return { ...NO_CLAIMS, email: emailOf(rest) };
  const fields = decode(rest);
  if (fields === undefined) throw notAToken();
  return claimsOf(fields);
}

function claimsOf(fields: StoredFields): TokenClaims {
  const exp = fields.integer("exp");
  const email = fields.text("email");
  return {
    email: email === undefined ? undefined : emailOf(email),
    expiresAtMs: exp === undefined ? undefined : exp * 1_000,
    issuer: fields.text("iss"),
    audience: fields.text("aud") ?? fields.texts("aud").join(" "),
  };
}

function emailOf(text: string): string | undefined {
  try {
    return canonicalUsername(text);
  } catch {
    return undefined;
  }
}

function decode(part: string): StoredFields | undefined {
  if (!/^[A-Za-z0-9_-]+$/.test(part)) return undefined;
  return parseFields(Buffer.from(part, "base64url").toString("utf8"));
}

/** The message never quotes what was pasted: it may be a password. */
function notAToken(): ClientError {
  return new ClientError("SIGN_IN_FAILED", "what was given is not an ID token", {
    todo: "Paste the whole token: three parts with dots between them.",
  });
}
