// Finds a free name in a directory for an inode that moves there beside its namesake.
import { NAME_MAX_BYTES } from "#base/limits.ts";

/**
 * Returns "name (2).ext" or the like with a free number; few look-ups even among many namesakes. Names stay
 * within NAME_MAX_BYTES: the part before the number is cut between characters.
 */
export function freeName(name: string, isTaken: (name: string) => boolean): string {
  let free = 2;
  for (; isTaken(numberedName(name, free)); free *= 2);
  let taken = free === 2 ? 1 : free / 2;
  while (free - taken > 1) {
    const middle = Math.floor((free + taken) / 2);
    if (isTaken(numberedName(name, middle))) taken = middle;
    else free = middle;
  }
  return numberedName(name, free);
}

/** The name with a number before its extension. */
export function numberedName(name: string, number: number): string {
  const dot = name.lastIndexOf(".");
  const extension = dot > 0 && name.length - dot <= 16 ? name.slice(dot) : "";
  const suffix = ` (${number})${extension}`;
  const room = NAME_MAX_BYTES - Buffer.byteLength(suffix);
  const characters = Array.from(name.slice(0, name.length - extension.length));
  while (Buffer.byteLength(characters.join("")) > room) characters.pop();
  return `${characters.join("")}${suffix}`.normalize("NFC");
}
