// Gets an ID token from the user: through the browser, or pasted (spec 5.1, decision T19).
import { systemRandom } from "#base/random.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { SIGN_IN_WAIT_MS } from "#client/terminal/limits.ts";
import { askSecret } from "#client/terminal/prompt.ts";
import { note, type Terminal } from "#client/terminal/terminal.ts";
import { readIdentitySettings } from "#security/identity/sign-in-variables.ts";
import { openBrowser } from "./browser.ts";
import { CallbackServer } from "./callback-server.ts";
import { type SignInStart, startSignIn } from "./code-exchange.ts";
import { readClaims } from "./id-token.ts";
import { findPortOwner } from "./port-owner.ts";
import type { Profile } from "./profile.ts";
import { providerFetch } from "./provider-trust.ts";

/** The terminal and signal of a sign-in. */
export interface SignInPlace {
  readonly terminal: Terminal;
  /** Aborts on Ctrl-C. */
  readonly signal: AbortSignal;
}

/** Signs in through the browser on this machine; where the listener's port is taken, by pasting. */
export async function signInWithBrowser(context: SignInPlace, profile: Profile): Promise<string> {
  const { start, redirectUri } = await prepare(context, profile);
  const callback = await listen(context, redirectUri, start.state);
  if (callback === undefined) return paste(context, start);
  try {
    note(context.terminal, "Sign in with your browser at this address:");
    context.terminal.error.write(`\n  ${start.consentUrl}\n\n`);
    openBrowser(start.consentUrl, context.terminal.env);
    return await waitForBrowser(callback, start, context.signal);
  } finally {
    await callback.close();
  }
}

/** Signs in without a local browser: the user pastes a token or the redirect's address. */
export async function signInByPaste(context: SignInPlace, profile: Profile): Promise<string> {
  if (profile.idp === undefined) {
    return pastedToken(
      await askSecret(context.terminal, "Paste an ID token (it is not shown): ", context.signal),
    );
  }
  const { start } = await prepare(context, profile);
  return paste(context, start);
}

async function prepare(
  context: SignInPlace,
  profile: Profile,
): Promise<{ start: SignInStart; redirectUri: string }> {
  const { redirectUri, clientSecret } = readIdentitySettings(context.terminal.env);
  const idp = profile.idp ?? {
    issuer: undefined,
    clientId: undefined,
    authUrl: undefined,
    tokenUrl: undefined,
  };
  const start = await startSignIn({
    idp,
    clientSecret,
    redirectUri,
    fetch: providerFetch(profile),
    random: systemRandom,
    signal: context.signal,
  });
  return { start, redirectUri };
}

/** Undefined when nothing can listen: the redirect leads to another host, or the port is taken. */
async function listen(
  context: SignInPlace,
  redirectUri: string,
  state: string,
): Promise<CallbackServer | undefined> {
  const url = new URL(redirectUri);
  if (url.protocol !== "http:" || !/^(?:localhost|127\.0\.0\.1|\[::1\])$/.test(url.hostname))
    return undefined;
  try {
    return await CallbackServer.listen({ redirectUri, state });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EADDRINUSE" && code !== "EACCES") throw error;
    const port = Number(url.port);
    const owner = findPortOwner(port);
    const who = owner === undefined ? "another process" : `the process ${owner.name} (${owner.pid})`;
    note(context.terminal, `The port ${port}, which the browser would come back to, is taken by ${who}.`);
    return undefined;
  }
}

async function waitForBrowser(
  callback: CallbackServer,
  start: SignInStart,
  signal: AbortSignal,
): Promise<string> {
  const timeout = AbortSignal.timeout(SIGN_IN_WAIT_MS);
  let token = "";
  try {
    await callback.wait(
      async (url) => {
        token = await start.exchange(url);
        return readClaims(token).email ?? "a user without an e-mail address";
      },
      AbortSignal.any([signal, timeout]),
    );
  } catch (error) {
    if (timeout.aborted) throw new ClientError("SIGN_IN_FAILED", "nobody signed in within ten minutes");
    throw error;
  }
  return token;
}

async function paste(context: SignInPlace, start: SignInStart): Promise<string> {
  note(context.terminal, "Open this address in a browser on any machine, and sign in:");
  context.terminal.error.write(`\n  ${start.consentUrl}\n\n`);
  note(
    context.terminal,
    "The browser is then sent to an address that begins with the redirect address and may show an error.",
  );
  const text = await askSecret(
    context.terminal,
    "Paste that address, or an ID token (it is not shown): ",
    context.signal,
  );
  if (!/^https?:\/\//i.test(text)) return pastedToken(text);
  const url = URL.parse(text);
  if (url === null || url.searchParams.get("state") !== start.state) {
    throw new ClientError(
      "SIGN_IN_FAILED",
      "that address does not belong to this sign-in, so it was refused",
    );
  }
  return start.exchange(url);
}

/** A pasted token without the whitespace that copying adds. Throws SIGN_IN_FAILED when it is none. */
export function pastedToken(text: string): string {
  const token = text.trim();
  if (token === "") throw new ClientError("SIGN_IN_FAILED", "nothing was pasted");
  readClaims(token);
  return token;
}
