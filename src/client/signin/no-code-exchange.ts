// Replaces code-exchange.ts in builds with USE_IDP_AUTH=0: every sign-in fails (spec 5.9, D24).
import { NO_IDP_AUTH_TEXT } from "#base/build-flags.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import type { SignInDeps, SignInStart } from "./code-exchange.ts";

/** Rejects with SIGN_IN_FAILED. */
export async function startSignIn(_deps: SignInDeps): Promise<SignInStart> {
  throw new ClientError("SIGN_IN_FAILED", NO_IDP_AUTH_TEXT, {
    todo: "Use a program that was built with it, or paste an ID token: grove login --paste",
  });
}
