// Begin and end of a silence or a maintenance, from a moment, or from a duration in words (decision D11).
import { GroveError } from "#base/errors.ts";
import { untilSeconds } from "#base/until-text.ts";

/** Longest silence: a year. */
export const SILENCE_LONGEST_MS: number = 366 * 86_400_000;

/** The requested times. */
export interface TimesAsked {
  /** Unix seconds; default now. */
  readonly starts_at?: number | undefined;
  /** Unix seconds. Either this or a duration. */
  readonly ends_at?: number | undefined;
  /** "2h", "until tomorrow 08:00". */
  readonly duration?: string | undefined;
  /** Time zone of a duration; default that of this machine. */
  readonly time_zone?: string | undefined;
}

/** Both in unix seconds. Throws BAD_ARGUMENT with metadata `pointer` for a past end or over a year. */
export function timesOf(
  asked: TimesAsked,
  nowSeconds: number,
): { readonly startsAt: number; readonly endsAt: number } {
  const startsAt = Math.max(asked.starts_at ?? nowSeconds, nowSeconds);
  const { ends_at: given, duration } = asked;
  if ((given === undefined) === (duration === undefined)) {
    throw refusal("/duration", "say either how long (duration) or until when (ends_at)");
  }
  const [pointer, endsAt] =
    duration === undefined
      ? (["/ends_at", given ?? 0] as const)
      : (["/duration", endOf(duration, { ...asked, startsAt, nowSeconds })] as const);
  const name = pointer.slice(1);
  if (endsAt <= nowSeconds) throw refusal(pointer, `${name} must be in the future`);
  if (endsAt <= startsAt) throw refusal(pointer, `${name} must come after starts_at`);
  if (endsAt - nowSeconds > SILENCE_LONGEST_MS / 1_000) throw refusal(pointer, "it must end within a year");
  return { startsAt, endsAt };
}

function endOf(
  duration: string,
  {
    time_zone: timeZone,
    startsAt,
    nowSeconds,
  }: TimesAsked & { readonly startsAt: number; readonly nowSeconds: number },
): number {
  const end = untilSeconds(duration, {
    nowMs: nowSeconds * 1_000,
    startMs: startsAt * 1_000,
    timeZone: timeZone ?? new Intl.DateTimeFormat().resolvedOptions().timeZone,
  });
  if (typeof end === "number") return end;
  throw refusal("/duration", end.problem);
}

function refusal(pointer: string, message: string): GroveError {
  return new GroveError("BAD_ARGUMENT", message, { metadata: { pointer } });
}
