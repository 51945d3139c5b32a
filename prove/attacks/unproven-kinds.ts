// What callers who have proven nothing do: one thing at a time, or what costs most all at once.
import { BODY_KINDS, together } from "./unproven-bodies.ts";
import { CONNECTION_KINDS, keepIdle } from "./unproven-connections.ts";
import { SIEGE, type UnprovenKind } from "./unproven-place.ts";

/** Idle connections of each address and at each of two doors while everything else goes on. */
const IDLE_EACH = 8;

const siege: UnprovenKind = (place) =>
  together(
    [
      ...Object.values(BODY_KINDS),
      () => keepIdle(place, [place.files, place.meta], place.addresses, IDLE_EACH),
    ],
    place,
  );

/** Every kind by its name. */
export const UNPROVEN_KINDS: Readonly<Record<string, UnprovenKind>> = {
  ...BODY_KINDS,
  ...CONNECTION_KINDS,
  [SIEGE]: siege,
};
