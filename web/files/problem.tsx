// What went wrong, in words, with the next step where there is one.
import { type ReactNode } from "react";
import { Refusal } from "./api.ts";
import { shownName } from "./words.ts";

/** Shows it; nothing where nothing did. */
export function Problem({ of }: { readonly of: unknown }): ReactNode {
  if (of === undefined) return null;
  const isOldSignIn = of instanceof Refusal && of.code === "SIGN_IN_AGAIN";
  const isOver = of instanceof Refusal && of.code === "SIGN_IN";
  return (
    <div className="problem" role="alert">
      <p>
        ■{" "}
        {isOldSignIn
          ? "For your safety this wants a sign-in of the last ten minutes."
          : of instanceof Error
            ? shownName(of.message)
            : "Something went wrong. Try again."}
      </p>
      {(isOldSignIn || isOver) && (
        <a className="button" href={`/sign-in?to=${encodeURIComponent(location.pathname + location.search)}`}>
          Sign in again
        </a>
      )}
    </div>
  );
}
