// Finds places inside one another: one source's files would count as the other's surplus.
import { ClientError } from "#client/terminal/client-error.ts";

/** Refuses --delete where two sources go to one place, or one into the other. Throws USAGE. */
export function refuseOverlaps(places: readonly string[]): void {
  // Some disks take names that differ in case for one.
  const sorted = places.map((place) => `${place.normalize("NFC").toLowerCase()}/`).sort();
  for (const [at, place] of sorted.entries()) {
    const before = sorted[at - 1];
    if (before === undefined || !place.startsWith(before)) continue;
    throw new ClientError(
      "USAGE",
      "with --delete no two sources may go to the same folder, or one into the other",
      {
        todo: "Send them one after the other, each to a folder of its own.",
      },
    );
  }
}
