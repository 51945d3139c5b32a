// The next steps for an alert, as buttons.
import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { AlertRecord } from "#wire/webapi/alert.ts";
import type { NextStep } from "../words/next-step.ts";

/** A button for each step. */
export function StepButtons({
  alert,
  steps,
}: {
  readonly alert: AlertRecord;
  readonly steps: readonly NextStep[];
}): ReactNode {
  return steps.map(({ label, path }) => (
    <Button
      key={path}
      component={Link}
      href={path}
      variant="default"
      size="compact-sm"
      aria-label={`${label} ${alert.title}`}
    >
      {label}
    </Button>
  ));
}
