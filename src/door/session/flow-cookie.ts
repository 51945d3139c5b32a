// The state of a sign-in between its two steps: in the browser's own cookie, so that any door can finish it.
import type { FlowSecrets } from "#security/identity/code-flow-types.ts";

/** Time that somebody has at the identity provider. */
export const FLOW_MS = 600_000;

/** Letters of the path; the cookie holds it beside its secrets. */
const RETURN_MAX_LENGTH = 1_024;

/** A sign-in under way. */
export interface SignInUnderWay {
  readonly secrets: FlowSecrets;
  /** Local path to which the browser returns. */
  readonly returnTo: string;
}

/** Text for the cookie. */
export function writeFlow({ secrets, returnTo }: SignInUnderWay, wallMs: number): string {
  const { state, nonce, verifier } = secrets;
  return Buffer.from(JSON.stringify([wallMs + FLOW_MS, state, nonce, verifier, returnTo])).toString(
    "base64url",
  );
}

/** The sign-in in a cookie; undefined for another text, and for one of more than ten minutes ago. */
export function readFlow(text: string | undefined, wallMs: number): SignInUnderWay | undefined {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(text ?? "", "base64url").toString("utf8"));
  } catch {
    return undefined;
  }
  if (!Array.isArray(value)) return undefined;
  const [endsMs, state, nonce, verifier, returnTo] = value as unknown[];
  if (typeof endsMs !== "number" || endsMs <= wallMs || endsMs > wallMs + FLOW_MS) return undefined;
  if (typeof state !== "string" || typeof nonce !== "string" || typeof verifier !== "string")
    return undefined;
  if (state === "" || nonce === "" || verifier === "") return undefined;
  return { secrets: { state, nonce, verifier }, returnTo: localPath(returnTo) };
}

/** A path of this door, in the letters of a header; "/" for everything that could lead elsewhere. */
export function localPath(value: unknown): string {
  if (typeof value !== "string" || !/^\/(?:$|[^/\\\p{Cc}][^\\\p{Cc}]*$)/u.test(value)) return "/";
  const written = value.toWellFormed().replace(/[^\x21-\x7e]/gu, encodeURIComponent);
  return written.length > RETURN_MAX_LENGTH ? "/" : written;
}
