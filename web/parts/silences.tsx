// The current and future silences, and a form for a new one.
import { Button, Select, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import type { Silence, SilenceMatcher } from "#wire/webapi/notification.ts";
import { useNodeChoices } from "../live/cluster.ts";
import { useSilenceEnd, useSilences, useSilencing } from "../live/silencing.ts";
import { SEVERITY_ORDER, TYPE_LABELS } from "../words/alert.ts";
import { formatMoment } from "../words/time.ts";
import { Unread } from "./page-state.tsx";
import { SilenceMenu } from "./silence-menu.tsx";

/** The list, and the form. */
export function Silences(): ReactNode {
  const { silences, error } = useSilences();
  const ending = useSilenceEnd();
  return (
    <section aria-labelledby="silences">
      <h2 id="silences">Silences</h2>
      {silences === undefined ? (
        <Unread what="the silences" error={error} />
      ) : silences.length === 0 ? (
        <p className="quiet">
          None. A silence keeps notices of matching alerts from being sent; the alerts themselves stay listed.
        </p>
      ) : (
        <ul className="plain-list">
          {silences.map((silence) => (
            <li key={silence.id}>
              <Sentence silence={silence} />
              <Button
                variant="default"
                size="compact-sm"
                aria-label={`End now: the silence of ${silence.comment || "these alerts"}`}
                onClick={() => ending.end(silence.id)}
              >
                End now
              </Button>
            </li>
          ))}
        </ul>
      )}
      {ending.error === null ? null : <p role="alert">{ending.error.message}</p>}
      <NewSilence />
    </section>
  );
}

function Sentence({ silence }: { readonly silence: Silence }): ReactNode {
  const nodes = useNodeChoices() ?? [];
  const nameOf = (id: string): string => nodes.find(({ value }) => value === id)?.label ?? id;
  const about = silence.matchers.map((matcher) => matcherText(matcher, nameOf)).join(" and ");
  return (
    <span>
      Alerts whose {about}, {silence.state === "pending" ? `from ${formatMoment(silence.starts_at)} ` : ""}
      until {formatMoment(silence.ends_at)}
      {silence.comment === "" ? "" : ` (${silence.comment})`}
    </span>
  );
}

const NAMES: Readonly<Record<SilenceMatcher["name"], string>> = {
  node_id: "node",
  type: "type",
  severity: "severity",
  username: "user",
};

function matcherText(
  { name, value, is_regex: isRegex }: SilenceMatcher,
  nameOf: (id: string) => string,
): string {
  if (isRegex) return `${NAMES[name]} matches ${value}`;
  // What an operator writes may be a word that every object has.
  const isType = name === "type" && Object.hasOwn(TYPE_LABELS, value);
  const label = isType ? TYPE_LABELS[value as keyof typeof TYPE_LABELS] : undefined;
  return `${NAMES[name]} is ${label ?? (name === "node_id" ? nameOf(value) : value)}`;
}

function NewSilence(): ReactNode {
  const [name, setName] = useState<SilenceMatcher["name"]>("node_id");
  const [value, setValue] = useState("");
  const [comment, setComment] = useState("");
  const making = useSilencing(() => {
    setValue("");
    setComment("");
  });
  return (
    <div className="filter-bar">
      <Select
        label="Silence alerts whose"
        data={Object.entries(NAMES).map(([key, label]) => ({ value: key, label }))}
        value={name}
        allowDeselect={false}
        onChange={(next) => {
          setName((next ?? "node_id") as SilenceMatcher["name"]);
          setValue("");
        }}
      />
      <Value name={name} value={value} onChange={setValue} />
      <TextInput
        label="because"
        value={comment}
        onChange={(event) => setComment(event.currentTarget.value)}
      />
      {value === "" ? (
        <Button variant="default" disabled>
          Silence ▾
        </Button>
      ) : (
        <SilenceMenu
          of="these alerts"
          isBusy={making.isBusy}
          onChoose={(endsAt) =>
            making.silence({ matchers: [{ name, value, is_regex: false }], endsAt, comment })
          }
        />
      )}
      {making.error === null ? null : <p role="alert">{making.error.message}</p>}
    </div>
  );
}

function Value({
  name,
  value,
  onChange,
}: {
  readonly name: SilenceMatcher["name"];
  readonly value: string;
  readonly onChange: (value: string) => void;
}): ReactNode {
  const nodes = useNodeChoices() ?? [];
  if (name === "username") {
    return <TextInput label="is" value={value} onChange={(event) => onChange(event.currentTarget.value)} />;
  }
  const choices =
    name === "type"
      ? Object.entries(TYPE_LABELS).map(([key, label]) => ({ value: key, label }))
      : name === "severity"
        ? SEVERITY_ORDER
        : nodes;
  return (
    <Select
      label="is"
      placeholder="Choose one"
      searchable
      limit={100}
      data={choices}
      value={value === "" ? null : value}
      onChange={(next) => onChange(next ?? "")}
    />
  );
}
