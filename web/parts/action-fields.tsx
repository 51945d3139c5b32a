// The fields of each kind of action.
import { NumberInput, Select, Textarea, TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import {
  CUSTOM_LIMIT_MAX_SECONDS,
  CUSTOM_LIMIT_SECONDS,
  LOG_LINES_DEFAULT,
  LOG_LINES_MAX,
  LOG_LINES_MIN,
} from "#base/limits.ts";
import type { Draft } from "../live/action-draft.ts";

type Fields = Draft["fields"];
interface FieldsProps {
  readonly fields: Fields;
  readonly set: (name: string, value: string | number) => void;
}

const SERVICES = ["fileserver", "metaserver", "admin"];
const text = (fields: Fields, name: string): string => String(fields[name] ?? "");

/** The fields of a draft's kind. */
export function ActionFields({
  draft: { action, fields },
  onChange,
}: {
  readonly draft: Draft;
  readonly onChange: (fields: Fields) => void;
}): ReactNode {
  const set = (name: string, value: string | number): void => onChange({ ...fields, [name]: value });
  switch (action) {
    case "pull":
      return <OneWord label="Branch" name="branch" fields={fields} set={set} />;
    case "build":
      return <OneWord label="Make target" name="make_target" fields={fields} set={set} />;
    case "restart":
      return <Service name="target_service" choices={[...SERVICES, "all"]} fields={fields} set={set} />;
    case "apt":
      return <Packages fields={fields} set={set} />;
    case "logs":
      return <Log fields={fields} set={set} />;
    case "custom":
      return <Command fields={fields} set={set} />;
    case "reboot":
      return null;
    default:
      return action satisfies never;
  }
}

function OneWord({
  label,
  name,
  fields,
  set,
}: FieldsProps & { readonly label: string; readonly name: string }): ReactNode {
  return (
    <TextInput
      label={label}
      required
      value={text(fields, name)}
      onChange={(event) => set(name, event.currentTarget.value)}
    />
  );
}

function Service({
  name,
  choices,
  fields,
  set,
}: FieldsProps & { readonly name: string; readonly choices: readonly string[] }): ReactNode {
  return (
    <Select
      label="Service"
      allowDeselect={false}
      data={choices}
      value={text(fields, name)}
      onChange={(value) => set(name, value ?? "fileserver")}
    />
  );
}

function Packages({ fields, set }: FieldsProps): ReactNode {
  return (
    <Select
      label="Packages"
      allowDeselect={false}
      data={[
        { value: "update_upgrade", label: "Update the lists and upgrade" },
        { value: "update_only", label: "Update the lists only" },
      ]}
      value={text(fields, "apt_mode")}
      onChange={(value) => set("apt_mode", value ?? "update_upgrade")}
    />
  );
}

function Log({ fields, set }: FieldsProps): ReactNode {
  return (
    <>
      <Service name="service" choices={SERVICES} fields={fields} set={set} />
      <NumberInput
        label="Lines"
        min={LOG_LINES_MIN}
        max={LOG_LINES_MAX}
        value={Number(fields["lines"] ?? LOG_LINES_DEFAULT)}
        onChange={(value) => set("lines", Number(value))}
      />
    </>
  );
}

function Command({ fields, set }: FieldsProps): ReactNode {
  return (
    <>
      <Textarea
        label="Command"
        description="A line for the shell of each node, as its SSH user"
        required
        autosize
        minRows={2}
        value={text(fields, "command")}
        onChange={(event) => set("command", event.currentTarget.value)}
      />
      <NumberInput
        label="Ended after seconds"
        min={1}
        max={CUSTOM_LIMIT_MAX_SECONDS}
        value={Number(fields["timeout_seconds"] ?? CUSTOM_LIMIT_SECONDS)}
        onChange={(value) => set("timeout_seconds", Number(value))}
      />
    </>
  );
}
