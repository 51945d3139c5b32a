// Formats handed-over roots for people and programs.

import { localTime } from "#client/terminal/local-time.ts";
import type { HandOver } from "#wire/proto/gen/grove/v1/common_pb.ts";

/** "read, write and delete", or without the last. */
export function handedRights({ mayDelete }: Pick<HandOver, "mayDelete">): string {
  return mayDelete ? "read, write and delete" : "read and write";
}

/** "handed over to carol@example.com until 2026-12-23 13:05, read and write, by administrator: has left". */
export function handOverText(handOver: Omit<HandOver, "$typeName" | "$unknown">, to: string): string {
  const { reason, setBy, untilMs } = handOver;
  return `handed over to ${to} until ${localTime(untilMs)}, ${handedRights(handOver)}, by ${setBy}: ${reason}`;
}

/** The same for programs. */
export function handOverJson(handOver: Omit<HandOver, "$typeName" | "$unknown">): Record<string, unknown> {
  const { to, mayDelete, reason, setBy, setAtMs, untilMs } = handOver;
  return { to, may_delete: mayDelete, reason, set_by: setBy, set_at_ms: setAtMs, until_ms: untilMs };
}
