// /api/auth/idp: operators sign in by name at the identity provider, where the console is configured for it.
import { createHmac } from "node:crypto";
import { fastifyCookie as cookies } from "@fastify/cookie";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "#base/clock.ts";
import { constantTimeEqual } from "#base/constant-time.ts";
import { isGroveError } from "#base/errors.ts";
import { errorText } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import { factsOf } from "#console/http/guard.ts";
import type { App } from "#console/http/route.ts";
import type { FlowSecrets } from "#security/identity/code-flow-types.ts";
import { CALLBACK_PATH, type OperatorPeople, type OperatorPerson } from "./operator-people.ts";
import { openSession, type SignInDeps } from "./sign-in-routes.ts";

/** Time an operator has at the identity provider to sign in. */
const IDP_SIGN_IN_MS: number = 10 * 60_000;

/** Cookie with the browser's secrets between the two steps. */
const FLOW_COOKIE = "svc_admin_flow";

/** The reason for the return to the sign-in page, which has a sentence for each. */
type Refused = "not_operator" | "failed" | "limited" | "away" | "needs_tls";

/** Dependencies in addition to those of signing in by password. */
export interface IdpSignInDeps extends SignInDeps {
  readonly people: OperatorPeople;
  readonly clock: Clock;
  readonly random: Random;
}

/** Registers both steps. */
export function idpSignInRoutes(app: App, deps: IdpSignInDeps): void {
  const seal = new FlowSeal(deps);
  // Pages that browsers are redirected to, not an interface for programs.
  const route = { config: { auth: "public" as const }, schema: { hide: true } };
  app.get("/api/auth/idp", route, (request, reply) => begin(deps, seal, request, reply));
  app.get(CALLBACK_PATH, route, (request, reply) => finish(deps, seal, request, reply));
}

async function begin(
  deps: IdpSignInDeps,
  seal: FlowSeal,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  if (!mayHaveCookie(deps, request)) return backWith(reply, "needs_tls");
  try {
    const { url, secrets } = await deps.people.flow.begin();
    const { isSecure } = factsOf(request);
    reply.setCookie(FLOW_COOKIE, seal.close(secrets), {
      ...FLOW_SCOPE,
      secure: isSecure,
      maxAge: IDP_SIGN_IN_MS / 1_000,
    });
    return await reply.redirect(url);
  } catch (error) {
    if (!isGroveError(error, "IDP_UNAVAILABLE")) throw error;
    deps.log.warn("idp_sign_in_unavailable", { error: errorText(error) });
    return backWith(reply, "away");
  }
}

const FLOW_SCOPE = { httpOnly: true, path: "/api/auth/idp", sameSite: "lax" } as const;

async function finish(
  deps: IdpSignInDeps,
  seal: FlowSeal,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { address, isSecure } = factsOf(request);
  const secrets = seal.open(cookies.parse(request.headers.cookie ?? "")[FLOW_COOKIE] ?? "");
  reply.clearCookie(FLOW_COOKIE, { ...FLOW_SCOPE, secure: isSecure });
  if (!mayHaveCookie(deps, request)) return backWith(reply, "needs_tls");
  // Another browser's flow, or an expired one: the provider is not asked.
  if (secrets === undefined) return backWith(reply, "failed");
  const attempt = deps.limiter.begin(address);
  if (typeof attempt === "number") {
    deps.onFailure(address);
    return backWith(reply, "limited");
  }
  let person: OperatorPerson | undefined;
  try {
    const idToken = await deps.people.flow.finish(new URL(request.raw.url ?? "/", "http://console"), secrets);
    if (idToken === undefined) return await refuse(deps, request, reply, "failed");
    person = await deps.people.operatorOf(idToken, address);
  } catch (error) {
    if (isGroveError(error, "TOKEN_REJECTED")) return refuse(deps, request, reply, "failed");
    attempt.takeBack();
    if (isGroveError(error, "BAD_ARGUMENT")) {
      // The reason about the list goes to the log for operators, not to the unproven caller.
      deps.log.error("operators_unreadable", { error: errorText(error) });
      return backWith(reply, "away");
    }
    if (!isGroveError(error, "IDP_UNAVAILABLE", "RATE_LIMITED", "OVERLOADED")) throw error;
    deps.log.warn("idp_sign_in_unavailable", { error: errorText(error) });
    return backWith(reply, "away");
  }
  if (person === undefined) return refuse(deps, request, reply, "not_operator");
  attempt.succeeded();
  openSession(deps, request, reply, { passwordHash: deps.password.nodeHash, person });
  return reply.redirect("/");
}

function refuse(
  deps: IdpSignInDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  why: Refused,
): FastifyReply {
  const { address } = factsOf(request);
  deps.log.warn("sign_in_failed", { address, by: "identity provider", why });
  deps.onFailure(address);
  deps.audit({
    act: "operator.refused",
    actor: "unknown",
    subject: "console",
    request: request.id,
    detail: { address, by: "identity provider", why },
  });
  return backWith(reply, why);
}

/** The rule of the password sign-in: plain HTTP would show the session to the network. */
function mayHaveCookie(deps: IdpSignInDeps, request: FastifyRequest): boolean {
  const { isLoopback, isSecure } = factsOf(request);
  return isSecure || isLoopback || deps.insecureHttp;
}

function backWith(reply: FastifyReply, why: Refused): FastifyReply {
  return reply.redirect(`/sign-in?refused=${why}`);
}

/**
 * Seals a flow's secrets into the browser's cookie, so that the console keeps no state of abandoned flows.
 */
class FlowSeal {
  readonly #key: Uint8Array;
  readonly #clock: Clock;

  constructor({ random, clock }: { readonly random: Random; readonly clock: Clock }) {
    this.#key = random.bytes(32);
    this.#clock = clock;
  }

  close({ state, nonce, verifier }: FlowSecrets): string {
    const endsMs = Math.trunc(this.#clock.steadyMs() + IDP_SIGN_IN_MS);
    const text = `${endsMs}.${state}.${nonce}.${verifier}`;
    return `${text}.${this.#mac(text)}`;
  }

  /** Undefined for a value that this process has not sealed, and for one older than ten minutes. */
  open(sealed: string): FlowSecrets | undefined {
    const at = sealed.lastIndexOf(".");
    const text = sealed.slice(0, Math.max(at, 0));
    if (!constantTimeEqual(sealed.slice(at + 1), this.#mac(text))) return undefined;
    const [ends, state = "", nonce = "", verifier = ""] = text.split(".");
    return Number(ends) > this.#clock.steadyMs() ? { state, nonce, verifier } : undefined;
  }

  #mac(text: string): string {
    return createHmac("sha256", this.#key).update(text).digest("base64url");
  }
}
