// Warns of a session that ends soon or has ended.
import { Alert, Button } from "@mantine/core";
import type { ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { useSignInAddress } from "../live/address-search.ts";
import { useNowMs } from "../live/cluster.ts";
import { useSessionEnd } from "../live/session.ts";
import { formatSpan } from "../words/time.ts";

/** The notice above a page; empty without a warning. */
export function SessionNotice(): ReactNode {
  const end = useSessionEnd();
  const [path] = useLocation();
  const signInAddress = useSignInAddress();
  const now = useNowMs() / 1_000;
  if (end === undefined || path === "/sign-in") return null;
  if (end.kind === "stays")
    return (
      <Alert color="yellow" variant="outline" mb="md" role="alert" title="You are still signed in">
        {end.why} Sign out again once it does.
      </Alert>
    );
  const isOver = end.kind === "ended" || end.expiresAt <= now;
  return (
    <Alert
      color="yellow"
      variant="outline"
      mb="md"
      title={isOver ? "Your session has ended" : "Your session ends soon"}
    >
      {isOver
        ? "You see what visitors see. Sign in again to go on; nothing that you had saved is lost."
        : `It ends in ${formatSpan(end.kind === "expiring" ? end.expiresAt - now : 0)}. Sign in again to go on without a break.`}{" "}
      <Button component={Link} href={signInAddress} variant="default" size="compact-sm">
        Sign in
      </Button>
    </Alert>
  );
}
