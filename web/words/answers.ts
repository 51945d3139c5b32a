// The last poll in words: a silent node is late at once, and offline only after 30 s.

import { refusesUploads } from "./disk-room.ts";
import type { LiveNode } from "./live-node.ts";
import { countText } from "./number.ts";
import { formatSpan } from "./time.ts";

const NAMED_MAX = 2;

/** True for a node that has answered before and missed the last poll, but is not offline yet. */
export function isLate(node: Pick<LiveNode, "status" | "stale" | "unknown">): boolean {
  return node.stale && node.status !== "offline" && node.unknown !== true;
}

/** "2 of 3 nodes answered the last poll (fs-2 is late: its last answer is 12 s old)", without a full stop. */
export function answeredText(nodes: readonly LiveNode[], nowSeconds: number): string {
  const answered = nodes.filter(({ stale }) => !stale).length;
  if (answered === nodes.length) {
    return nodes.length === 1
      ? "The node answered the last poll"
      : `All ${nodes.length} nodes answered the last poll`;
  }
  const late = lateText(nodes.filter(isLate), nowSeconds);
  return `${answered} of ${countText(nodes.length, "node")} answered the last poll${late}`;
}

/** The overview's title when no alert needs action. */
export function calmTitle(nodes: readonly LiveNode[]): string {
  if (nodes.length === 0) return "This cluster has no nodes yet";
  // Holds even if its alert was resolved by hand.
  const refusing = nodes.filter(refusesUploads).length;
  if (refusing > 0) return countText(refusing, "node refuses uploads", "nodes refuse uploads");
  const late = nodes.filter(isLate);
  if (late.length > 0)
    return late.length === 1 ? `${late[0]?.name} is late` : `${late.length} nodes are late`;
  const unknown = nodes.filter((node) => node.unknown === true).length;
  if (unknown === 0) return "Nothing needs you";
  return `${unknown} of ${countText(nodes.length, "node")} ${unknown === 1 ? "has" : "have"} not answered yet`;
}

function lateText(late: readonly LiveNode[], nowSeconds: number): string {
  const [first] = late;
  if (first === undefined) return "";
  if (late.length === 1) {
    return ` (${first.name} is late: its last answer is ${formatSpan(nowSeconds - first.last_seen)} old)`;
  }
  const names = late.slice(0, NAMED_MAX).map(({ name }) => name);
  const others = late.length - names.length;
  return ` (${others === 0 ? names.join(" and ") : `${names.join(", ")} and ${others} more`} are late)`;
}
