// The attacks of unproven callers: each by itself, or the most expensive ones at once.
import { BODY_KINDS, together } from "./unproven-bodies.ts";
import { CONNECTION_KINDS, keepIdle } from "./unproven-connections.ts";
import { SIEGE, type UnprovenKind } from "./unproven-place.ts";

/** Idle connections of each address at each of two ports during a siege. */
const IDLE_EACH = 8;

const siege: UnprovenKind = (place) =>
  together(
    [
      ...Object.values(BODY_KINDS),
      () => keepIdle(place, [place.files, place.meta], place.addresses, IDLE_EACH),
    ],
    place,
  );

/** Every attack by its name. */
export const UNPROVEN_KINDS: Readonly<Record<string, UnprovenKind>> = {
  ...BODY_KINDS,
  ...CONNECTION_KINDS,
  [SIEGE]: siege,
};
