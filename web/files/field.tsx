// Fields of forms: a label with a line of text, or with a choice.
import { type ComponentProps, type ReactNode, useId } from "react";

type Field<T extends "input" | "select"> = Omit<ComponentProps<T>, "id" | "onChange" | "value"> & {
  readonly label: string;
  readonly value: string;
  readonly onText: (text: string) => void;
};

/** A line of text. */
export function TextField({ label, onText, ...input }: Field<"input">): ReactNode {
  const id = useId();
  return (
    <div>
      <label htmlFor={id}>{label}</label>
      <input id={id} autoComplete="off" onChange={(event) => onText(event.target.value)} {...input} />
    </div>
  );
}

/** A choice. */
export function ChoiceField({ label, onText, children, ...select }: Field<"select">): ReactNode {
  const id = useId();
  return (
    <div>
      <label htmlFor={id}>{label}</label>
      <select id={id} onChange={(event) => onText(event.target.value)} {...select}>
        {children}
      </select>
    </div>
  );
}
