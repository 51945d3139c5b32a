// Facts side by side: a name in small, and what it is.
import type { ReactNode } from "react";

/** A fact: its name, and what it is. */
export type Fact = readonly [name: string, value: ReactNode];

/** The list; `pairs` are facts within something, in its own size. */
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
