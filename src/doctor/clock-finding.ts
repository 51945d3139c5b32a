// Judges the difference between two clocks (decision D24: shown above 2 s, an alarm above 60 s).
import { type Finding, failed, ok, warning } from "./finding.ts";

const SHOWN_MS = 2_000;
const ALARM_MS = 60_000;

/** Judges a difference in milliseconds; positive when the other clock is ahead of ours. */
export function clockFinding(name: string, differenceMs: number): Finding {
  const seconds = (Math.abs(differenceMs) / 1_000).toFixed(1);
  const what = `is ${seconds} s ${differenceMs < 0 ? "behind" : "ahead of"} this machine's`;
  const todo =
    "Let both machines follow a time server (NTP): tokens and certificates are judged by the clock.";
  if (Math.abs(differenceMs) > ALARM_MS) return failed(name, what, todo);
  if (Math.abs(differenceMs) > SHOWN_MS) return warning(name, what, todo);
  return ok(name, `differs by less than ${SHOWN_MS / 1_000} s from this machine's`);
}
