// The time of day for relative times, a little behind.
import { useEffect, useState } from "react";

const EVERY_MS = 30_000;

/** Unix milliseconds, renewed twice a minute. */
export function useNow(): number {
  const [nowMs, setNowMs] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return nowMs;
}
