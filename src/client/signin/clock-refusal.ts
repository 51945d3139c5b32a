// Finds which clock is wrong when a server refuses an ID token for its time.
import { GroveError, isGroveError } from "#base/errors.ts";
import { TOKEN_CLOCK_LENIENCY_MS } from "#base/limits.ts";
import { HintedRefusal } from "#client/terminal/client-error.ts";
import { readClaims } from "./id-token.ts";

/** Claims that are times. */
const TIMES: readonly (string | undefined)[] = ["exp", "iat", "nbf"];

/** The facts by which a refusal is judged. */
export interface ClockFacts {
  /** The server that refused. */
  readonly peer: string;
  /** The ID token that was sent. */
  readonly token: string;
  /** This machine's wall time. */
  readonly nowMs: number;
}

/**
 * Explains the refusal of an ID token that is valid by this machine's clock; returns other errors unchanged.
 * A token that has expired here too needs a new sign-in, independent of the server's clock.
 */
export function judgedByClocks(error: unknown, facts: ClockFacts): unknown {
  if (!isGroveError(error, "TOKEN_REJECTED") || !TIMES.includes(error.metadata["claim"])) return error;
  const { expiresAtMs = Number.POSITIVE_INFINITY } = readClaims(facts.token);
  if (expiresAtMs <= facts.nowMs) return error;
  const why = `the server ${facts.peer} refuses your sign-in for its time`;
  const clocks = clocksApart(error, facts.nowMs);
  const message = `${why}: its clock ${clocks ?? "does not agree with the identity provider's"}`;
  return new HintedRefusal(
    new GroveError(error.code, message, { metadata: error.metadata, cause: error }),
    `Signing in once more does not help. ${clocks === undefined ? "" : "If this machine's clock is right, "}${
      clocks === undefined ? "Tell" : "tell"
    } the administrator of the cluster to set the server's.`,
  );
}

/** The difference between the server's clock and this one; undefined without one or without its time. */
function clocksApart({ metadata }: GroveError, nowMs: number): string | undefined {
  const serverMs = Number(metadata["now_ms"]);
  if (!Number.isSafeInteger(serverMs) || serverMs <= 0) return undefined;
  const apartMs = serverMs - nowMs;
  if (Math.abs(apartMs) <= TOKEN_CLOCK_LENIENCY_MS) return undefined;
  return `is ${spanOf(Math.abs(apartMs))} ${apartMs < 0 ? "behind" : "ahead of"} this machine's`;
}

function spanOf(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  if (minutes < 120) return `${minutes} minutes`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} hours` : `${Math.round(hours / 24)} days`;
}
