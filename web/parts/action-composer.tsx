// Puts an action together: what, where, how; shows word for word what will run; asks before what is dangerous.
import { Button, MultiSelect, Radio, Select, TextInput } from "@mantine/core";
import { type ReactNode, type SubmitEvent, useState } from "react";
import type { ActionRecord } from "#webapi/action-record.ts";
import { type Composer, type Draft, FIRST_FIELDS, useComposer } from "../live/action-draft.ts";
import { usePresets } from "../live/actions.ts";
import { useCluster } from "../live/cluster.ts";
import { ACTION_LABELS, mustBeTyped } from "../words/action.ts";
import { ActionFields } from "./action-fields.tsx";
import { ActionTargets } from "./action-targets.tsx";

/** The composer; leads to the action's own page once it runs. */
export function ActionComposer(): ReactNode {
  const composer = useComposer();
  const { draft, change } = composer;
  const [typed, setTyped] = useState("");
  const { cluster } = useCluster();
  const names = draft.nodes.map((id) => cluster?.nodes.find((node) => node.id === id)?.name ?? id);
  const password = mustBeTyped(draft.action, names);
  const isReady = draft.nodes.length > 0 && (password === undefined || typed === password);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (isReady) composer.run();
  };
  return (
    <form onSubmit={submit} style={{ maxWidth: 720, display: "grid", gap: 12 }}>
      <What draft={draft} change={change} />
      <Where draft={draft} change={change} />
      {password === undefined || draft.nodes.length === 0 ? null : (
        <TextInput
          label={`This can take ${draft.nodes.length === 1 ? "the machine" : "machines"} away from its users. Type “${password}” to go on`}
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
          autoComplete="off"
        />
      )}
      <div style={{ display: "flex", gap: 8 }}>
        <Button
          variant="default"
          disabled={draft.nodes.length === 0}
          loading={composer.isTrying}
          onClick={composer.showWhatWillRun}
        >
          Show what will run
        </Button>
        <Button type="submit" disabled={!isReady} loading={composer.isStarting}>
          Run
        </Button>
      </div>
      {composer.refusals.map((refusal) => (
        <p key={refusal} role="alert">
          {refusal}
        </p>
      ))}
      {composer.trial === undefined ? null : (
        <section aria-label="What will run">
          <h2>What will run</h2>
          <ActionTargets record={composer.trial} />
        </section>
      )}
    </form>
  );
}

type PartProps = Pick<Composer, "draft" | "change">;

function What({ draft, change }: PartProps): ReactNode {
  return (
    <>
      <Presets onChoose={(action, fields) => change({ action, fields })} />
      <Select
        label="What"
        allowDeselect={false}
        data={Object.entries(ACTION_LABELS).map(([value, label]) => ({ value, label }))}
        value={draft.action}
        onChange={(value) => {
          const action = (value ?? "restart") as ActionRecord["action"];
          change({ action, fields: FIRST_FIELDS[action] });
        }}
      />
      <ActionFields draft={draft} onChange={(fields) => change({ fields })} />
    </>
  );
}

function Where({ draft, change }: PartProps): ReactNode {
  const { cluster } = useCluster();
  return (
    <>
      <MultiSelect
        label="Where"
        description="Nodes that another action holds are shown with it"
        searchable
        clearable
        limit={100}
        data={(cluster?.nodes ?? []).map((node) => ({
          value: node.id,
          label: node.locked_by === undefined ? node.name : `${node.name} (held by ${node.locked_by})`,
        }))}
        value={[...draft.nodes]}
        onChange={(value) => change({ nodes: value })}
      />
      {draft.nodes.length < 2 ? null : (
        <Radio.Group
          label="How"
          value={draft.mode}
          onChange={(value) => change({ mode: value === "parallel" ? "parallel" : "rolling" })}
        >
          <div style={{ display: "flex", gap: 16, marginTop: 4 }}>
            <Radio value="rolling" label="One after the other, stop when one fails" />
            <Radio value="parallel" label="All at once" />
          </div>
        </Radio.Group>
      )}
    </>
  );
}

function Presets({
  onChoose,
}: {
  readonly onChoose: (action: ActionRecord["action"], fields: Draft["fields"]) => void;
}): ReactNode {
  const { presets } = usePresets();
  if (presets === undefined || presets.length === 0) return null;
  return (
    <Select
      label="Preset"
      placeholder="Choose one, or put it together below"
      clearable
      data={presets.map(({ id, title }) => ({ value: id, label: title }))}
      onChange={(id) => {
        const request = presets.find((preset) => preset.id === id)?.request as
          | Record<string, unknown>
          | undefined;
        if (request === undefined) return;
        const { action } = request;
        const fields = Object.entries(request).filter(
          ([name, value]) =>
            name in FIRST_FIELDS[action as ActionRecord["action"]] &&
            (typeof value === "string" || typeof value === "number"),
        );
        onChoose(action as ActionRecord["action"], Object.fromEntries(fields) as Draft["fields"]);
      }}
    />
  );
}
