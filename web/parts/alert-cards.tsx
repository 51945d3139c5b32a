// Open alerts as cards: sentence, value and limit, begin, count and next steps.
import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import { Link } from "wouter";
import type { AlertRecord } from "#wire/webapi/alert.ts";
import { call } from "../live/api.ts";
import { ALERTS_KEY, useNowMs } from "../live/cluster.ts";
import { useHeldRows } from "../live/held-rows.ts";
import { queryClient } from "../live/query-client.ts";
import { matchersOf, useSilencing } from "../live/silencing.ts";
import { measureText } from "../words/alert.ts";
import { nextSteps } from "../words/next-step.ts";
import { countText } from "../words/number.ts";
import { formatMoment, formatSpan } from "../words/time.ts";
import { CommandLine } from "./command-line.tsx";
import { type Fact, FactList } from "./fact-list.tsx";
import { HeldBox } from "./held-box.tsx";
import { SilenceMenu } from "./silence-menu.tsx";
import { StateMark } from "./state-mark.tsx";
import { StepButtons } from "./step-buttons.tsx";

const idOf = ({ id }: AlertRecord): string => id;

/** A card for each; visitors can only look. */
export function AlertCards({
  alerts,
  total,
  isOperator,
}: {
  readonly alerts: readonly AlertRecord[];
  /** Open alerts, also those that have no room here. */
  readonly total: number;
  readonly isOperator: boolean;
}): ReactNode {
  const held = useHeldRows(alerts, idOf);
  const { rows } = held;
  // A card stays under the pointer when its alert has ended. Where not all are here it may be open all the same.
  const listed = useMemo(() => new Set(alerts.map(idOf)), [alerts]);
  const hasEnded = ({ id }: AlertRecord): boolean => total <= alerts.length && !listed.has(id);
  const open = rows.filter((alert) => !hasEnded(alert));
  const act = useMutation({
    mutationFn: ({ path, body }: { path: string; body: unknown }) => call(path, { method: "POST", body }),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ALERTS_KEY }),
  });
  const silencing = useSilencing();
  const error = act.error ?? silencing.error;
  return (
    <HeldBox held={held}>
      {error === null ? null : <p role="alert">{error.message}</p>}
      <ul className="cards">
        {rows.map((alert) => (
          <Card key={alert.id} alert={alert} isOperator={isOperator}>
            {hasEnded(alert) ? (
              <span className="quiet" role="status">
                No longer open
              </span>
            ) : isOperator ? (
              <Deeds alert={alert} act={act.mutate} silence={silencing.silence} />
            ) : null}
          </Card>
        ))}
      </ul>
      {isOperator && open.length > 1 ? (
        <p className="quiet">
          <Button
            variant="default"
            size="compact-sm"
            onClick={() => act.mutate({ path: "/api/alerts/resolve", body: { ids: open.map(idOf) } })}
          >
            Resolve the {open.length} shown
          </Button>{" "}
          What is resolved by hand is not raised again until its cause has been away once, or gets worse.
        </p>
      ) : null}
    </HeldBox>
  );
}

/** What an operator does about an open alert. */
function Deeds({
  alert,
  act,
  silence,
}: {
  readonly alert: AlertRecord;
  readonly act: (deed: { readonly path: string; readonly body: unknown }) => void;
  readonly silence: ReturnType<typeof useSilencing>["silence"];
}): ReactNode {
  const { id, title } = alert;
  return (
    <>
      {alert.acked_by === undefined ? (
        <Button
          variant="default"
          size="compact-sm"
          aria-label={`Acknowledge ${title}`}
          onClick={() => act({ path: "/api/alerts/ack", body: { id } })}
        >
          Acknowledge
        </Button>
      ) : null}
      <Button
        variant="default"
        size="compact-sm"
        aria-label={`Resolve ${title}`}
        onClick={() => act({ path: "/api/alerts/resolve", body: { id } })}
      >
        Resolve
      </Button>
      <SilenceMenu
        of={title}
        onChoose={(endsAt) => silence({ matchers: matchersOf(alert), endsAt, comment: title })}
      />
    </>
  );
}

function Card({
  alert,
  isOperator,
  children,
}: {
  readonly alert: AlertRecord;
  readonly isOperator: boolean;
  readonly children: ReactNode;
}): ReactNode {
  const now = useNowMs() / 1_000;
  const steps = nextSteps(alert, isOperator).filter(({ path }) => !path.startsWith("/alerts"));
  return (
    <li className="card" data-state={alert.severity}>
      <div className="card-head">
        <StateMark state={alert.severity} />
        <span className="quiet" title={formatMoment(alert.timestamp)}>
          for {formatSpan(now - alert.timestamp)}
        </span>
        {alert.acked_by === undefined ? null : (
          <span className="quiet">
            acknowledged{alert.acked_at === undefined ? "" : ` ${formatSpan(now - alert.acked_at)} ago`}
          </span>
        )}
      </div>
      <p className="card-text">{alert.message}</p>
      {alert.command === undefined || alert.resolved ? null : (
        <>
          <p className="quiet card-text">
            Type this where the metadata store can be reached; each of these users then gets a new, empty root
            at the next sign-in:
          </p>
          <CommandLine command={alert.command} />
        </>
      )}
      <Cause alert={alert} />
      <div className="card-foot">
        <StepButtons alert={alert} steps={steps} />
        {children}
      </div>
    </li>
  );
}

/** The figures of its cause. */
function Cause({ alert }: { readonly alert: AlertRecord }): ReactNode {
  const value = measureText(alert.type, alert.value);
  const limit = measureText(alert.type, alert.threshold);
  const facts: readonly Fact[] = [
    ...(value === undefined ? [] : ([["Value", value]] as const)),
    ...(limit === undefined ? [] : ([["Limit", limit]] as const)),
    ["Since", formatMoment(alert.timestamp)],
    ...(alert.raised_count > 1 ? ([["Raised", countText(alert.raised_count, "time")]] as const) : []),
    ...(alert.node_id === undefined
      ? []
      : ([
          [
            "Node",
            <Link key="node" href={`/nodes/${encodeURIComponent(alert.node_id)}`}>
              {alert.node_name ?? alert.node_id}
            </Link>,
          ],
        ] as const)),
    ...(alert.username === undefined
      ? []
      : ([
          [
            "User",
            <Link key="user" href={`/users?user=${encodeURIComponent(alert.username)}`}>
              {alert.username}
            </Link>,
          ],
        ] as const)),
  ];
  return <FactList className="pairs" facts={facts} />;
}
