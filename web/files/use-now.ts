// The time of day at the door for relative times, a little behind.
import { useEffect, useState } from "react";
import { doorNowMs } from "./door-clock.ts";

const EVERY_MS = 30_000;

/** Unix milliseconds, renewed twice a minute. */
export function useNow(): number {
  const [nowMs, setNowMs] = useState(() => doorNowMs());
  useEffect(() => {
    const timer = setInterval(() => setNowMs(doorNowMs()), EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return nowMs;
}
