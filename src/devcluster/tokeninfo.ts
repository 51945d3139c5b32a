// The tokeninfo endpoint of the demonstration's provider: returns an ID token's claims (spec 5.2).
import { createPublicKey, verify, type webcrypto } from "node:crypto";

/** The inputs of token checks. */
export interface TokeninfoDeps {
  readonly issuer: string;
  /** The signing key, or its public half. */
  readonly signingKey: Readonly<Record<string, unknown>>;
  /** Wall time in unix milliseconds. */
  readonly nowMs: () => number;
}

/** Status and JSON body of an answer. */
export interface TokeninfoAnswer {
  readonly status: 200 | 400;
  readonly body: Readonly<Record<string, unknown>>;
}

const CLAIMS = ["iss", "sub", "aud", "exp", "iat", "email", "email_verified", "name"] as const;

/** Makes the handler for one token: its claims with our signature and before its expiry, else 400. */
export function tokeninfo(deps: TokeninfoDeps): (token: string) => TokeninfoAnswer {
  const { kty, n, e } = deps.signingKey;
  const key = createPublicKey({ key: { kty, n, e } as webcrypto.JsonWebKey, format: "jwk" });
  return (token) => {
    const claims = signedClaims(token, (data, signature) => verify("RSA-SHA256", data, key, signature));
    if (claims === undefined) return refused("the token is not one that this provider has signed");
    const isCurrent = typeof claims["exp"] === "number" && claims["exp"] * 1_000 > deps.nowMs();
    if (claims["iss"] !== deps.issuer || !isCurrent)
      return refused("the token has expired or is another issuer's");
    const told = CLAIMS.filter((name) => name in claims).map((name) => [name, claims[name]] as const);
    return { status: 200, body: Object.fromEntries(told) };
  };
}

function refused(description: string): TokeninfoAnswer {
  return { status: 400, body: { error: "invalid_token", error_description: description } };
}

/** The claims of a compact token with our one algorithm; undefined for any defect. */
function signedClaims(
  token: string,
  isSigned: (data: Buffer, signature: Buffer) => boolean,
): Readonly<Record<string, unknown>> | undefined {
  const match = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/.exec(token);
  const [, head = "", body = "", signature = ""] = match ?? [];
  try {
    const header = parseObject(head);
    if (match === null || header?.["alg"] !== "RS256") return undefined;
    if (!isSigned(Buffer.from(`${head}.${body}`), Buffer.from(signature, "base64url"))) return undefined;
    return parseObject(body);
  } catch {
    return undefined;
  }
}

function parseObject(part: string): Readonly<Record<string, unknown>> | undefined {
  const value: unknown = JSON.parse(Buffer.from(part, "base64url").toString("utf8"));
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
}
