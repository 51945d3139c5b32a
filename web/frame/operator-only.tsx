// Shows a page to operators, and the sign-in to visitors.
import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useSignInAddress } from "../live/address-search.ts";
import { useSession } from "../live/session.ts";
import { Reading } from "../parts/page-state.tsx";

/** The page, for signed-in operators. */
export function OperatorOnly({ children }: { readonly children: ReactNode }): ReactNode {
  const session = useSession();
  const signInAddress = useSignInAddress();
  if (session === undefined) return <Reading what="who is signed in" />;
  if (session.authenticated) return children;
  return (
    <>
      <h1>This page is for operators</h1>
      <p>It shows what depends on users, so it needs the operator's password.</p>
      <Button component={Link} href={signInAddress}>
        Sign in
      </Button>
    </>
  );
}
