// Composes an action: kind, nodes, strategy; shows the exact commands, and confirms dangerous ones.
import { Button, MultiSelect, Radio, Select, TextInput } from "@mantine/core";
import { type ReactNode, type SubmitEvent, useMemo, useState } from "react";
import type { ActionRecord } from "#wire/webapi/action-record.ts";
import { type Composer, type Draft, FIRST_FIELDS, useComposer } from "../live/action-draft.ts";
import { usePresets } from "../live/actions.ts";
import { useNodeChoices } from "../live/cluster.ts";
import { useActionNodes } from "../live/enrolment.ts";
import { ACTION_LABELS, mustBeTyped } from "../words/action.ts";
import { ActionFields } from "./action-fields.tsx";
import { ActionTargets } from "./action-targets.tsx";

/** Nodes of one action. */
const NODES_MAX = 50;

/** The composer; opens the action's page after its start. */
export function ActionComposer(): ReactNode {
  const composer = useComposer();
  const { draft } = composer;
  const [typed, setTyped] = useState("");
  // What was typed is said of one action on certain nodes, and not of the next.
  const change: Composer["change"] = (next) => {
    setTyped("");
    composer.change(next);
  };
  const nodes = useNodeChoices() ?? [];
  const names = draft.nodes.map((id) => nodes.find(({ value }) => value === id)?.label ?? id);
  const password = mustBeTyped(draft.action, names);
  const isReady = draft.nodes.length > 0 && (password === undefined || typed === password);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (isReady) composer.run();
  };
  return (
    <div className="two-columns">
      <form onSubmit={submit} className="stack">
        <Presets draft={draft} change={change} />
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
        <div className="button-row">
          <Button type="submit" disabled={!isReady} loading={composer.isStarting}>
            {names.length === 0
              ? "Run"
              : names.length === 1
                ? `Run on ${names[0]}`
                : `Run on ${names.length} nodes`}
          </Button>
          <Button
            variant="default"
            disabled={draft.nodes.length === 0}
            loading={composer.isTrying}
            onClick={composer.showWhatWillRun}
          >
            Show what will run
          </Button>
        </div>
        {composer.refusals.map((refusal) => (
          <p key={refusal} role="alert">
            {refusal}
          </p>
        ))}
      </form>
      <section aria-labelledby="what-will-run">
        <h2 id="what-will-run">What will run</h2>
        {composer.trial === undefined ? (
          <p className="panel quiet">
            {draft.nodes.length === 0
              ? "Choose a node. Then this shows, word for word, what would run on it."
              : "“Show what will run” tells it word for word, node by node, without running it."}
          </p>
        ) : (
          <ActionTargets record={composer.trial} />
        )}
      </section>
    </div>
  );
}

type PartProps = Pick<Composer, "draft" | "change">;

function What({ draft, change }: PartProps): ReactNode {
  return (
    <>
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
  const nodes = useNodeChoices();
  const known = useActionNodes();
  const choices = useMemo(() => {
    const missing = new Set(known?.flatMap(({ node_id: id, enrolled }) => (enrolled ? [] : [id])));
    return (
      nodes?.map(({ value, label, isHeld }) => ({
        value,
        label: isHeld
          ? `${label} (another action holds it)`
          : missing.has(value)
            ? `${label} (not enrolled)`
            : label,
      })) ?? []
    );
  }, [nodes, known]);
  return (
    <>
      <MultiSelect
        label="Where"
        placeholder={draft.nodes.length === 0 ? "Choose nodes" : ""}
        searchable
        clearable
        limit={100}
        maxValues={NODES_MAX}
        data={choices}
        value={[...draft.nodes]}
        onChange={(value) => change({ nodes: value })}
      />
      {draft.nodes.length < 2 ? null : (
        <Radio.Group
          label="How"
          value={draft.mode}
          onChange={(value) => change({ mode: value === "parallel" ? "parallel" : "rolling" })}
        >
          <div className="stack">
            <Radio value="rolling" label="One after the other, stop when one fails" />
            <Radio value="parallel" label="All at once" />
          </div>
        </Radio.Group>
      )}
    </>
  );
}

function Presets({ draft, change }: PartProps): ReactNode {
  const { presets } = usePresets();
  const nodes = useNodeChoices() ?? [];
  const [description, setDescription] = useState<string>();
  if (presets === undefined || presets.length === 0) return null;
  const all = nodes.map(({ value }) => value);
  return (
    <Select
      label="Preset"
      placeholder="Choose one, or put it together below"
      description={description}
      clearable
      data={presets.map(({ id, title }) => ({ value: id, label: title }))}
      onChange={(id) => {
        const preset = presets.find((each) => each.id === id);
        setDescription(preset?.description);
        if (preset === undefined) return;
        const { action, nodes: where } = preset.request;
        const known = Object.entries(preset.request).filter(
          ([name, value]) =>
            Object.hasOwn(FIRST_FIELDS[action], name) &&
            (typeof value === "string" || typeof value === "number"),
        );
        change({
          action,
          fields: Object.fromEntries(known) as Draft["fields"],
          // "All" means every node, unless some were selected before.
          nodes: draft.nodes.length > 0 || where !== "all" || all.length > NODES_MAX ? draft.nodes : all,
        });
      }}
    />
  );
}
