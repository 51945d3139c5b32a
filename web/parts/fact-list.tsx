// Facts side by side: a small name and its value.
import type { ReactNode } from "react";

/** A fact: its name and its value. */
export type Fact = readonly [name: string, value: ReactNode];

/** The list; `pairs` are nested facts in the surrounding size. */
export function FactList({
  facts,
  className = "facts",
}: {
  readonly facts: readonly Fact[];
  readonly className?: "facts" | "pairs";
}): ReactNode {
  return (
    <dl className={className}>
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
