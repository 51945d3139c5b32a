// Sends requests to the identity provider within limits: time, size, JSON only, no redirects, no address in
// error texts (C-10, C-13).
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { IDP_TIMEOUT_MS } from "#base/limits.ts";
import type { Fetch } from "#os/authority-fetch.ts";

/** Largest answer accepted from the identity provider. */
export const IDP_RESPONSE_MAX_BYTES = 65_536;

/** An answer with its whole body. */
export interface ProviderAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/**
 * The refusal while the provider is out of reach. It contains nothing of the request: the address may hold a
 * token.
 */
export function unavailable(problem: string): GroveError {
  return new GroveError("IDP_UNAVAILABLE", `the identity provider ${problem}; try again later`);
}

/** Sends one request and reads at most 64 KiB of JSON within 5 s. Throws IDP_UNAVAILABLE (decision D21). */
export async function askProvider(
  deps: { clock: Clock; fetch: Fetch },
  url: string | URL,
  init: RequestInit = {},
): Promise<ProviderAnswer> {
  const controller = new AbortController();
  const timedOut = Promise.withResolvers<never>();
  timedOut.promise.catch(() => {});
  const stopTimer = deps.clock.after(IDP_TIMEOUT_MS, () => {
    controller.abort();
    timedOut.reject(unavailable(`did not answer within ${IDP_TIMEOUT_MS / 1000} seconds`));
  });
  try {
    // A fetch that ignores the signal must not block the caller either.
    return await Promise.race([
      exchange(deps.fetch, url, { ...init, signal: controller.signal }),
      timedOut.promise,
    ]);
  } catch (error) {
    controller.abort();
    if (error instanceof GroveError) throw error;
    throw unavailable(`cannot be reached (${systemCode(error)})`);
  } finally {
    stopTimer();
  }
}

async function exchange(fetch: Fetch, url: string | URL, init: RequestInit): Promise<ProviderAnswer> {
  const response = await fetch(url, { ...init, redirect: "manual" });
  const { status } = response;
  if (response.type === "opaqueredirect" || (status >= 300 && status < 400)) {
    await response.body?.cancel();
    throw unavailable("answered with a redirect, which is not followed");
  }
  if (status >= 500) {
    await response.body?.cancel();
    throw unavailable(`answered with status ${status}`);
  }
  return { status, contentType: response.headers.get("content-type") ?? "", body: await readBody(response) };
}

async function readBody(response: Response): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  let bytes = 0;
  for await (const part of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += part.byteLength;
    if (bytes > IDP_RESPONSE_MAX_BYTES)
      throw unavailable(`answered with more than ${IDP_RESPONSE_MAX_BYTES} bytes`);
    text += decoder.decode(part, { stream: true });
  }
  return text + decoder.decode();
}

/**
 * The body as a JSON object. Throws IDP_UNAVAILABLE for anything else: a proxy's page is no verdict on a
 * token.
 */
export function jsonObject(answer: ProviderAnswer): Record<string, unknown> {
  if (!/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(answer.contentType)) {
    throw unavailable("answered with something other than JSON");
  }
  let value: unknown;
  try {
    value = JSON.parse(answer.body);
  } catch {
    throw unavailable("answered with broken JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw unavailable("answered with JSON of another shape");
  }
  return value as Record<string, unknown>;
}

/** Only the system's code, such as ECONNREFUSED: messages of fetch may quote the request. */
function systemCode(error: unknown): string {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 4; at = at.cause, depth++) {
    const { code } = at as NodeJS.ErrnoException;
    if (typeof code === "string" && /^[A-Z0-9_]{2,64}$/.test(code)) return code;
  }
  return "connection failed";
}
