// Locks a user out, lets one in again, or ends all sessions: with a reason, and each node's answer.
import { Button, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import {
  endUserSessions,
  setUserState,
  type UserStateChanged,
  type UserStateKnown,
  useUserState,
} from "../live/user-state.ts";
import { formatMoment } from "../words/time.ts";

const REASON_MAX_LENGTH = 200;

type Deed = "disable" | "enable" | "end";

/** The part of a user's panel about access. */
export function UserLock({ username }: { readonly username: string }): ReactNode {
  const { known, error } = useUserState(username);
  const [reason, setReason] = useState("");
  const act = useMutation({
    mutationFn: (deed: Deed) =>
      deed === "end"
        ? endUserSessions(username, reason.trim())
        : setUserState(username, { disabled: deed === "disable", reason: reason.trim() }),
    onSuccess: () => setReason(""),
  });
  const state = known?.state ?? undefined;
  const isLocked = state?.disabled === true;
  const isReasonMissing = reason.trim() === "";
  return (
    <section className="stack">
      <h3>Access</h3>
      {known === undefined && error !== null ? (
        <p className="quiet">Whether this user is locked out cannot be read now: {error.message}</p>
      ) : state === undefined ? (
        <p>May sign in.</p>
      ) : (
        <p>
          {state.removed_until !== null
            ? `Removed: the files are kept until ${formatMoment(state.removed_until)}, and the address is retired.`
            : isLocked
              ? `Locked out${state.closes_shares ? ", and what is shared is closed" : ""}.`
              : "May sign in."}{" "}
          <span className="quiet">
            {formatMoment(state.set_at)}, by {state.set_by}
            {state.reason === "" ? "" : `: ${state.reason}`}
          </span>
        </p>
      )}
      {known === undefined ? null : <HandedOver known={known} />}
      <TextInput
        label="Reason"
        description="For administrators and the audit log; the user is not told"
        maxLength={REASON_MAX_LENGTH}
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
      <div className="button-row">
        {isLocked ? (
          <Button variant="default" loading={act.isPending} onClick={() => act.mutate("enable")}>
            Let in again
          </Button>
        ) : (
          <Button
            color="red"
            disabled={isReasonMissing}
            loading={act.isPending}
            onClick={() => act.mutate("disable")}
          >
            Lock out
          </Button>
        )}
        <Button
          variant="default"
          disabled={isReasonMissing || act.isPending}
          onClick={() => act.mutate("end")}
        >
          End all sessions
        </Button>
      </div>
      {act.error === null ? null : <p role="alert">{act.error.message}</p>}
      {act.data === undefined ? null : <Outcome changed={act.data} />}
    </section>
  );
}

/** Users who may reach this user's root by handing over, and users whose roots this one may reach. */
function HandedOver({ known }: { readonly known: UserStateKnown }): ReactNode {
  const { hand_overs: handOvers, inherits } = known;
  if (handOvers.length + inherits.length === 0) return null;
  return (
    <ul className="plain-list">
      {handOvers.map((handOver) => (
        <li key={handOver.to}>
          <span>Root handed over to {handOver.to}</span>
          <span className="quiet">{detailOf(handOver)}</span>
        </li>
      ))}
      {inherits.map((handOver) => (
        <li key={handOver.root}>
          <span>Reaches the root of {handOver.root}</span>
          <span className="quiet">{detailOf(handOver)}</span>
        </li>
      ))}
    </ul>
  );
}

function detailOf(handOver: UserStateKnown["hand_overs"][number]): string {
  const rights = handOver.may_delete ? "read, write and delete" : "read and write";
  const { until, set_by: by, reason } = handOver;
  return `${rights}, until ${formatMoment(until)}, by ${by}: ${reason}`;
}

function Outcome({ changed }: { readonly changed: UserStateChanged }): ReactNode {
  return (
    <div role="status">
      <p>
        {changed.holds_everywhere
          ? "It holds on every node."
          : "It does not hold everywhere yet: these nodes learn of it when they are back."}
      </p>
      <ul className="plain-list">
        {changed.nodes.map(({ id, name, problem, sessions_ended: ended }) => (
          <li key={id}>
            <span>{name}</span>
            <span className="quiet">
              {problem ?? (ended === 0 ? "holds" : `holds; ${ended} session${ended === 1 ? "" : "s"} ended`)}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}
