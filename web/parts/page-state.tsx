// Stands for a page's content: loading, empty, or failed, with the next step.
import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { ApiProblem } from "../live/api.ts";
import { capital, sentence } from "../words/sentence.ts";

/** Shown during the first read. */
export function Reading({ what }: { readonly what: string }): ReactNode {
  return (
    <p className="quiet" role="status">
      Reading {what} …
    </p>
  );
}

/** Shown for an empty list, with the way to fill it. */
export function Nothing({ children }: { readonly children: ReactNode }): ReactNode {
  return <p className="panel quiet">{children}</p>;
}

/** Shown for a cluster without nodes, with the way to add one. */
export function NoNodes(): ReactNode {
  return (
    <Nothing>
      No FileServer has registered yet. Start one with <code>grove fileserver</code>, pointed at this
      cluster's MetaServer; it appears here within ten seconds.
    </Nothing>
  );
}

/** Shown for missing data, loading or failed; `what` begins with a small letter. */
export function Unread({ what, error }: { readonly what: string; readonly error: Error | null }): ReactNode {
  return error === null ? <Reading what={what} /> : <Failed what={capital(what)} error={error} />;
}

/** Shown after a failed read. */
export function Failed({
  what,
  error,
  retry,
}: {
  readonly what: string;
  readonly error: Error;
  readonly retry?: () => void;
}): ReactNode {
  const request = error instanceof ApiProblem ? error.problem?.instance : undefined;
  return (
    <div className="panel" role="alert">
      <p style={{ marginTop: 0 }}>
        {what} could not be read. {sentence(error.message)}
      </p>
      {request === undefined ? null : (
        <p className="quiet">Request {request.replace("urn:svc:request:", "")}</p>
      )}
      {retry === undefined ? null : (
        <Button variant="default" size="xs" onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}
