// Files, trash and uploads under way in a quota: a bar, and a legend with amounts.
import type { ReactNode } from "react";
import type { UserRow } from "#wire/webapi/user.ts";
import { bytesText } from "../words/number.ts";
import { SplitBar } from "./split-bar.tsx";

/** Labels of a bar's parts, in order. */
export const STRETCHES = [
  { field: "live_bytes", label: "files", color: "var(--grove-accent)" },
  { field: "trash_bytes", label: "trash", color: "var(--grove-quiet)" },
  { field: "staging_bytes", label: "uploads under way", color: "var(--grove-warning)" },
] as const;

/** The bar of one user with its amounts. */
export function UsageLegend({ user }: { readonly user: UserRow }): ReactNode {
  const free = BigInt(user.quota_limit) - BigInt(user.used_bytes);
  return (
    <div className="usage-legend">
      <SplitBar user={user} />
      <ul>
        {STRETCHES.map(({ field, label, color }) => (
          <li key={field}>
            <Swatch color={color} />
            {bytesText(user[field])} {label}
          </li>
        ))}
        <li>
          <Swatch color="var(--grove-bar)" />
          {free < 0n
            ? `${bytesText((-free).toString())} above the quota`
            : `${bytesText(free.toString())} free`}
        </li>
      </ul>
    </div>
  );
}

/** The legend of all bars on a page. */
export function BarKey(): ReactNode {
  return (
    <ul className="bar-key">
      {STRETCHES.map(({ field, label, color }) => (
        <li key={field}>
          <Swatch color={color} />
          {label}
        </li>
      ))}
    </ul>
  );
}

function Swatch({ color }: { readonly color: string }): ReactNode {
  return <span className="swatch" aria-hidden="true" style={{ background: color }} />;
}
