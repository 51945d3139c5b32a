// The page for unknown addresses.
import type { ReactNode } from "react";
import { Link } from "wouter";

/** The page for unknown addresses. */
export function Page(): ReactNode {
  return (
    <>
      <h1>There is no such page</h1>
      <p>
        Perhaps it needs a sign-in, or the address was cut. <Link href="/">Go to the overview</Link>, or press
        Ctrl K and type where you want to go.
      </p>
    </>
  );
}
