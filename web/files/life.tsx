// How long something is to last: a choice of days.
import { type ReactNode } from "react";
import { doorNowMs } from "./door-clock.ts";
import { ChoiceField } from "./field.tsx";

const DAY_MS = 86_400_000;
const CHOICES: readonly { readonly days: number; readonly text: string }[] = [
  { days: 1, text: "1 day" },
  { days: 7, text: "7 days" },
  { days: 30, text: "30 days" },
  { days: 365, text: "1 year" },
];

/** The end after so many days from now in unix milliseconds; 0 for 0 days, which is no end. */
export function endAfter(days: number): number {
  return days === 0 ? 0 : doorNowMs() + days * DAY_MS;
}

/** The choice; 0 days stand for no end. */
export function LifeChoice(props: {
  readonly days: number;
  readonly needsEnd: boolean;
  readonly onChange: (days: number) => void;
}): ReactNode {
  const { days: chosen, needsEnd, onChange } = props;
  return (
    <ChoiceField label="Ends after" value={String(chosen)} onText={(text) => onChange(Number(text))}>
      {CHOICES.map(({ days, text }) => (
        <option key={days} value={days}>
          {text}
        </option>
      ))}
      {!needsEnd && <option value={0}>Never</option>}
    </ChoiceField>
  );
}
