// The routes of a sign-in at the demonstration's provider: the user's identity, then consent for Grove.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "#base/clock.ts";
import { constantTimeEqual } from "#base/constant-time.ts";
import type { Interaction, ProviderLibrary } from "./provider-library.ts";
import { AUTH_PATH } from "./provider-paths.ts";
import { type DemoUser, subjectOf } from "./provider-settings.ts";
import { consentPage, loginPage, messagePage, PAGE_POLICY } from "./sign-in-page.ts";

/** Cookie with the signed-in user; a second one of this name and `.sig` is its signature. */
export const SESSION_COOKIE = "grove_demo_session";

const FORM_MAX_BYTES = 8_192;
/** Wrong passwords for one address in this time; more are refused unread. */
const FAILURES_MAX = 20;
const FAILURE_WINDOW_MS = 60_000;

/** Dependencies of the routes. */
export interface SignInDeps {
  readonly provider: ProviderLibrary;
  readonly users: readonly DemoUser[];
  readonly clock: Clock;
}

/** The handler of one step, GET or POST. */
export type SignInHandler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** Makes the handler for everything below SIGN_IN_PATH. */
export function signInRoutes(deps: SignInDeps): SignInHandler {
  const { provider, users } = deps;
  const emails = users.map(({ email }) => email);
  const failures = new FailureCount(deps.clock);

  const show = (response: ServerResponse, interaction: Interaction): void => {
    const subject = interaction.session?.accountId;
    const signedIn = emails.find((email) => subjectOf(email) === subject);
    const isConsent = interaction.prompt.name === "consent" && signedIn !== undefined;
    const scopes = (interaction.params.scope ?? "").split(" ");
    sendPage(response, 200, isConsent ? consentPage({ email: signedIn, scopes }) : loginPage({ emails }));
  };

  const signIn = async (
    request: IncomingMessage,
    response: ServerResponse,
    form: URLSearchParams,
  ): Promise<void> => {
    const email = (form.get("email") ?? "").trim().toLowerCase();
    const again = (status: number, problem: string): void =>
      sendPage(response, status, loginPage({ emails, email, problem }));
    if (failures.isFull(email)) return again(429, "Too many wrong passwords. Wait a minute, then try again.");
    const user = users.find((candidate) => candidate.email === email);
    if (!isPassword(form.get("password") ?? "", user?.password)) {
      failures.add(email);
      return again(403, "That is not the e-mail address and password of one of the users.");
    }
    await provider.interactionFinished(
      request,
      response,
      { login: { accountId: subjectOf(email) } },
      { mergeWithLastSubmission: false },
    );
  };

  return async (request, response) => {
    const interaction = await provider.interactionDetails(request, response).catch(() => undefined);
    if (interaction === undefined) {
      const text = "This sign-in has ended or was begun in another browser. Start it again from the program.";
      return sendPage(response, 400, messagePage("Please start again", text));
    }
    if (request.method !== "POST") return show(response, interaction);
    const form = await readForm(request);
    // A form with just an address and a password is a sign-in.
    switch (form?.get("action") ?? (form?.has("password") === true ? "login" : undefined)) {
      case "login":
        return signIn(request, response, form ?? new URLSearchParams());
      case "other":
        return startOver(interaction, response);
      case "consent":
        return allow(provider, interaction, request, response);
      case "cancel":
        return provider.interactionFinished(
          request,
          response,
          { error: "access_denied", error_description: "the sign-in was cancelled" },
          { mergeWithLastSubmission: false },
        );
      default:
        return sendPage(
          response,
          400,
          messagePage("Please start again", "That form was not one of this page."),
        );
    }
  };
}

async function allow(
  provider: ProviderLibrary,
  interaction: Interaction,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const accountId = interaction.session?.accountId;
  if (accountId === undefined || interaction.prompt.name !== "consent") {
    return sendPage(response, 400, messagePage("Please start again", "Nobody has signed in yet."));
  }
  const known =
    interaction.grantId === undefined ? undefined : await provider.Grant.find(interaction.grantId);
  const grant = known ?? new provider.Grant({ accountId, clientId: interaction.params.client_id });
  const { missingOIDCScope, missingOIDCClaims } = interaction.prompt.details;
  if (missingOIDCScope !== undefined) grant.addOIDCScope(missingOIDCScope.join(" "));
  if (missingOIDCClaims !== undefined) grant.addOIDCClaims(missingOIDCClaims);
  await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } });
}

/** Forgets this browser's signed-in user, and begins the same sign-in again. */
function startOver(interaction: Interaction, response: ServerResponse): void {
  const gone = "; path=/; expires=Thu, 01 Jan 1970 00:00:00 GMT; httponly";
  response.writeHead(303, {
    location: `${AUTH_PATH}?${new URLSearchParams({ ...interaction.params }).toString()}`,
    "set-cookie": [SESSION_COOKIE, `${SESSION_COOKIE}.sig`].map((name) => `${name}=${gone}`),
    "cache-control": "no-store",
  });
  response.end();
}

/** Sends a page that may be neither cached nor framed. */
export function sendPage(response: ServerResponse, status: number, html: string): void {
  response.writeHead(status, {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": PAGE_POLICY,
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
  });
  response.end(html);
}

function isPassword(typed: string, expected: string | undefined): boolean {
  const isSame = constantTimeEqual(typed, expected ?? "");
  return isSame && expected !== undefined;
}

async function readForm(request: IncomingMessage): Promise<URLSearchParams | undefined> {
  if (!/^application\/x-www-form-urlencoded\b/i.test(request.headers["content-type"] ?? "")) return undefined;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > FORM_MAX_BYTES) return undefined;
    chunks.push(chunk);
  }
  return new URLSearchParams(Buffer.concat(chunks).toString("utf8"));
}

/** Wrong passwords by typed address, in windows of a minute. */
class FailureCount {
  readonly #clock: Clock;
  readonly #counts = new Map<string, number>();
  #windowEndsMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  isFull(email: string): boolean {
    const nowMs = this.#clock.steadyMs();
    if (nowMs >= this.#windowEndsMs || this.#counts.size > 1_000) {
      this.#counts.clear();
      this.#windowEndsMs = nowMs + FAILURE_WINDOW_MS;
    }
    return (this.#counts.get(email) ?? 0) >= FAILURES_MAX;
  }

  add(email: string): void {
    this.#counts.set(email, (this.#counts.get(email) ?? 0) + 1);
  }
}
