// The texts about a node restored from a backup: its moment, and what was lost as far as known.
import type { Part } from "./text-parts.ts";

interface Facts {
  readonly node: string;
  readonly detail: Readonly<Record<string, Part>>;
}

/** The sentences. */
export function restoreText({ node, detail }: Facts): { readonly title: string; readonly message: string } {
  const taken = detail["taken_at"];
  const moment =
    typeof taken === "number"
      ? `${new Date(taken * 1_000).toISOString().slice(0, 16).replace("T", " ")} UTC`
      : "";
  const backup = detail["backup"] === undefined ? "" : ` (${detail["backup"]})`;
  const sentences = [
    `${node} was restored from its backup of ${moment}${backup}: whatever came after that is not there`,
    lines(detail["lost_lines"], detail["up_to"]),
    users("Roots that are gone", detail["gone"], detail["gone_count"]),
    users("Roots that are older than they were", detail["older"], detail["older_count"]),
    users("Quotas that are older than they were", detail["quotas"], detail["quotas_count"]),
    detail["gone"] === undefined
      ? ""
      : "Users whose root is gone are told so when they sign in; an empty one is made once you confirm it with grove node lost-root",
    detail["is_partial"] === undefined
      ? ""
      : "The console did not see this node just before, so that there may be more",
  ];
  return {
    title: `${node} was restored from ${moment}`,
    message: `${sentences.filter((sentence) => sentence !== "").join(". ")}.`,
  };
}

function lines(lost: Part, upTo: Part): string {
  if (typeof lost !== "number" || lost === 0) return "";
  return `Its audit log goes on behind line ${upTo}; ${lost} later ${lost === 1 ? "line is" : "lines are"} kept here`;
}

function users(what: string, named: Part, count: Part): string {
  if (named === undefined || typeof count !== "number") return "";
  const more = count - String(named).split(", ").length;
  return `${what}: ${named}${more > 0 ? ` and ${more} more` : ""}`;
}
