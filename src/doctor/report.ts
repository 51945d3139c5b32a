// Formats the doctor's findings for people and programs.
import type { Finding, State } from "./finding.ts";

const MARKS: Readonly<Record<State, string>> = { ok: "ok     ", warning: "warning", failed: "failed " };

/** The number of findings in each state. */
export function countStates(findings: readonly Finding[]): Record<State, number> {
  const counts: Record<State, number> = { ok: 0, warning: 0, failed: 0 };
  for (const { state } of findings) counts[state]++;
  return counts;
}

/** A line for each finding, its action below it, and the sum at the end. */
export function reportLines(findings: readonly Finding[]): string[] {
  const counts = countStates(findings);
  return [
    ...findings.flatMap(({ name, state, what, todo }) => [
      `${MARKS[state]}  ${name}: ${what}`,
      ...(todo === "" ? [] : [`         ${todo}`]),
    ]),
    "",
    `${counts.ok} ok, ${counts.warning} warning${counts.warning === 1 ? "" : "s"}, ${counts.failed} failed`,
  ];
}

/** The same for programs. */
export function reportJson(findings: readonly Finding[]): Record<string, unknown> {
  return {
    ...countStates(findings),
    checks: findings.map(({ name, state, what, todo }) => ({ name, state, what, todo })),
  };
}
