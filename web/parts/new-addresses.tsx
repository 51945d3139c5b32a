// People who wait with a new e-mail address: who they are, what a word on it does, and which nodes have yet to hear.
import { Button } from "@mantine/core";
import { type ReactNode, useState } from "react";
import type { NewAddress } from "#wire/webapi/new-address.ts";
import { useNowMs } from "../live/cluster.ts";
import { useAddressDecision, useNewAddresses } from "../live/new-addresses.ts";
import { countText } from "../words/number.ts";
import { sentence } from "../words/sentence.ts";
import { formatAgo, formatMoment } from "../words/time.ts";

/** Nothing while nobody waits and no change is on its way. */
export function NewAddresses(): ReactNode {
  const list = useNewAddresses();
  const decision = useAddressDecision();
  const [asked, setAsked] = useState("");
  if (list === undefined || list.waiting.length + list.changing.length === 0) return null;
  const { waiting, changing } = list;
  return (
    <section aria-labelledby="new-addresses" className="panel breaks">
      <h2 id="new-addresses">
        {waiting.length === 0
          ? "New addresses on their way"
          : waiting.length === 1
            ? "1 person waits with a new address"
            : `${countText(waiting.length, "person", "people")} wait with a new address`}
      </h2>
      {decision.error === null ? null : <p role="alert">{sentence(decision.error.message)}</p>}
      <ul className="plain-list">
        {waiting.map((one) => (
          <li key={`${one.issuer} ${one.subject}`}>
            <Waiting
              one={one}
              decision={decision}
              isAsked={asked === one.to}
              ask={(isAsked) => setAsked(isAsked ? one.to : "")}
            />
          </li>
        ))}
        {changing.map(({ from, to, waits_for: nodes }) => (
          <li key={to}>
            {from} is {to} now.{" "}
            <span className="quiet">
              {nodes.join(", ")} {nodes.length === 1 ? "has" : "have"} yet to hear of it; until then {from} is
              closed.
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Waiting({
  one: { from, to, issuer, subject, last_seen_at: lastSeenAt },
  decision,
  isAsked,
  ask,
}: {
  readonly one: NewAddress;
  readonly decision: ReturnType<typeof useAddressDecision>;
  readonly isAsked: boolean;
  readonly ask: (isAsked: boolean) => void;
}): ReactNode {
  const now = useNowMs() / 1_000;
  const decide = (word: "confirm" | "refuse"): void => {
    ask(false);
    decision.ask({ from, to, decision: word });
  };
  return (
    <>
      <p>
        {from} signs in as <strong>{to}</strong> now.{" "}
        <span className="quiet" title={formatMoment(lastSeenAt)}>
          The account {subject} of {issuer}, last seen {formatAgo(lastSeenAt, now)}.
        </span>
      </p>
      {isAsked ? (
        <p>
          Files, shares, links, groups and app passwords of {from} go to {to}, and the sessions end. There is
          no way back.
        </p>
      ) : null}
      <div className="button-row">
        {isAsked ? (
          <>
            <Button size="compact-sm" color="red" loading={decision.isBusy} onClick={() => decide("confirm")}>
              It is the same person: change it
            </Button>
            <Button variant="default" size="compact-sm" onClick={() => ask(false)}>
              Not now
            </Button>
          </>
        ) : (
          <>
            <Button
              variant="default"
              size="compact-sm"
              aria-label={`Confirm ${to} for ${from}`}
              onClick={() => ask(true)}
            >
              Confirm …
            </Button>
            <Button
              variant="default"
              size="compact-sm"
              loading={decision.isBusy}
              aria-label={`Refuse ${to} for ${from}`}
              onClick={() => decide("refuse")}
            >
              Refuse
            </Button>
          </>
        )}
      </div>
    </>
  );
}
