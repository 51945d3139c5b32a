// Composes a rollout: branch, nodes, canary and gate; shows the plan before its start.
import { Button, MultiSelect, NumberInput, Select, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, type SubmitEvent, useState } from "react";
import { useLocation } from "wouter";
import {
  ACTION_NODES_MAX,
  ROLLOUT_ERRORS_PER_SECOND_ABOVE,
  ROLLOUT_HEALTH_SECONDS,
  ROLLOUT_OBSERVE_SECONDS,
  ROLLOUT_WAIT_MAX_SECONDS,
} from "#base/limits.ts";
import { newKey } from "../live/action-draft.ts";
import { useNodeChoices } from "../live/cluster.ts";
import { planRollout, type RequestedRollout, startRollout } from "../live/rollouts.ts";
import { countText } from "../words/number.ts";
import { RolloutStrip } from "./rollout-strip.tsx";

const FIRST: RequestedRollout = { nodes: "all", branch: "main", target_service: "fileserver", step_size: 1 };

/** The composer; opens the rollout's page after its start. */
export function RolloutComposer(): ReactNode {
  const [request, setRequest] = useState(FIRST);
  const [key, setKey] = useState(newKey);
  const [, navigate] = useLocation();
  const plan = useMutation({ mutationFn: () => planRollout(request) });
  const start = useMutation({
    mutationFn: () => startRollout(request, key),
    onSuccess: ({ id }) => navigate(`/actions/rollouts/${encodeURIComponent(id)}`),
  });
  const change = (next: Partial<RequestedRollout>): void => {
    setRequest({ ...request, ...next });
    setKey(newKey());
    plan.reset();
    start.reset();
  };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    plan.mutate();
  };
  const planned = plan.data;
  const error = plan.error ?? start.error;
  return (
    <div className="two-columns">
      <form onSubmit={submit} className="stack">
        <What request={request} change={change} />
        <Where request={request} change={change} />
        <Gates request={request} change={change} />
        <div className="button-row">
          <Button
            type="submit"
            variant={planned === undefined ? "filled" : "default"}
            loading={plan.isPending}
          >
            Show the plan
          </Button>
          {planned === undefined ? null : (
            <Button onClick={() => start.mutate()} loading={start.isPending}>
              Start on {countText(planned.nodes.length, "node")}
            </Button>
          )}
        </div>
        {error === null ? null : <p role="alert">{error.message}</p>}
      </form>
      <section aria-labelledby="plan">
        <h2 id="plan">The plan</h2>
        {planned === undefined ? (
          <p className="panel quiet">
            One node goes first, alone. When it answers again and stays well, the others follow step by step.
            The rollout stops by itself at the first thing that is not well, and one click brings back what
            was there before.
          </p>
        ) : (
          <RolloutStrip rollout={planned} />
        )}
      </section>
    </div>
  );
}

interface PartProps {
  readonly request: RequestedRollout;
  readonly change: (next: Partial<RequestedRollout>) => void;
}

function What({ request, change }: PartProps): ReactNode {
  return (
    <>
      <TextInput
        label="Branch"
        required
        value={request.branch}
        onChange={(event) => change({ branch: event.currentTarget.value })}
      />
      <Select
        label="Restarts"
        allowDeselect={false}
        data={[
          { value: "fileserver", label: "the FileServer" },
          { value: "metaserver", label: "the MetaServer" },
          { value: "all", label: "every service but this console" },
        ]}
        value={request.target_service}
        onChange={(value) => change({ target_service: value ?? "fileserver" })}
      />
    </>
  );
}

function Where({ request, change }: PartProps): ReactNode {
  const nodes = useNodeChoices() ?? [];
  const chosen = request.nodes === "all" ? [] : request.nodes;
  const candidates = chosen.length === 0 ? nodes : nodes.filter(({ value }) => chosen.includes(value));
  return (
    <>
      <MultiSelect
        label="Where"
        placeholder={chosen.length === 0 ? "Every node with SSH" : ""}
        searchable
        clearable
        limit={100}
        data={nodes}
        value={[...chosen]}
        onChange={(value) => change({ nodes: value.length === 0 ? "all" : value, canary: undefined })}
      />
      <Select
        label="Goes first, alone"
        placeholder="The first of them"
        clearable
        searchable
        limit={100}
        data={candidates}
        value={request.canary ?? null}
        onChange={(value) => change({ canary: value ?? undefined })}
      />
      <NumberInput
        label="Then this many at a time"
        min={1}
        max={ACTION_NODES_MAX}
        value={request.step_size ?? 1}
        onChange={(value) => change({ step_size: typeof value === "number" ? value : 1 })}
      />
    </>
  );
}

function Gates({ request, change }: PartProps): ReactNode {
  const { gates = {} } = request;
  const set = (name: keyof NonNullable<RequestedRollout["gates"]>, value: number | string): void =>
    change({ gates: { ...gates, ...(typeof value === "number" ? { [name]: value } : {}) } });
  return (
    <details>
      <summary>What must hold before the next goes</summary>
      <div className="stack" style={{ marginTop: 8 }}>
        <NumberInput
          label="It answers within (seconds)"
          min={1}
          max={ROLLOUT_WAIT_MAX_SECONDS}
          value={gates.health_seconds ?? ROLLOUT_HEALTH_SECONDS}
          onChange={(value) => set("health_seconds", value)}
        />
        <NumberInput
          label="Then it is watched for (seconds)"
          min={0}
          max={ROLLOUT_WAIT_MAX_SECONDS}
          value={gates.observe_seconds ?? ROLLOUT_OBSERVE_SECONDS}
          onChange={(value) => set("observe_seconds", value)}
        />
        <NumberInput
          label="Failed operations a second above what it had before"
          min={0}
          max={1_000}
          step={0.1}
          value={gates.errors_per_second_above ?? ROLLOUT_ERRORS_PER_SECOND_ABOVE}
          onChange={(value) => set("errors_per_second_above", value)}
        />
      </div>
    </details>
  );
}
