// A text field for an end, with the understood moment below.
import { TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { UNTIL_TEXT_MAX_LENGTH, untilSeconds } from "#base/until-text.ts";
import { useNowMs } from "../live/cluster.ts";
import { sentence } from "../words/sentence.ts";
import { formatMoment } from "../words/time.ts";

/** The moment of a text by this browser's clock: unix seconds, or the error. */
export function understood(text: string, nowMs: number): number | { readonly problem: string } {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  const end = untilSeconds(text, { nowMs, timeZone });
  return typeof end === "number" && end * 1_000 <= nowMs ? { problem: "that moment is over" } : end;
}

/** The field. */
export function UntilInput({
  value,
  onChange,
}: {
  readonly value: string;
  readonly onChange: (text: string) => void;
}): ReactNode {
  const [isTouched, setTouched] = useState(false);
  const end = understood(value, useNowMs());
  return (
    <TextInput
      label="For how long, or until when"
      description={
        typeof end === "number" ? `Until ${formatMoment(end)}` : "2h · 1d 12h · tomorrow 08:00 · Friday 18:00"
      }
      error={isTouched && typeof end !== "number" ? sentence(end.problem) : undefined}
      maxLength={UNTIL_TEXT_MAX_LENGTH}
      data-autofocus
      value={value}
      onBlur={() => setTouched(true)}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}
