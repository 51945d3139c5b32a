// Values of changes on their way to the writer's thread and back.
import { GroveError } from "#base/errors.ts";
import type { Change, ChangeContext, Counted } from "#storage/contract/inode.ts";
import type { ChangeReply } from "#storage/metadata/change-messages.ts";

/** Rounds to whole milliseconds, as stored. Throws BAD_ARGUMENT for an invalid time. */
export function wholeMs(timeMs: number): number {
  const whole = Math.trunc(timeMs);
  if (!Number.isSafeInteger(whole))
    throw new GroveError("BAD_ARGUMENT", "a time is a number of milliseconds");
  return whole;
}

/** The change of an answer; without createdBy it was made by the owner. */
export function toChange(context: ChangeContext, reply: Counted<ChangeReply>): Change {
  const { inode, usage, usedDeltaBytes, inodeDelta, kept } = reply;
  const { parentId, createdBy, ...rest } = inode;
  return {
    inode: { ...rest, parentId: parentId ?? undefined, createdBy: createdBy ?? context.owner },
    usage,
    usedDeltaBytes,
    inodeDelta,
    ...(kept === undefined ? {} : { kept }),
  };
}
