// Something that is read from the door once, and again on demand.
import { useCallback, useEffect, useEffectEvent, useState } from "react";

/** What is known of it. */
export interface Loaded<T> {
  /** Undefined until it is there. */
  readonly value: T | undefined;
  readonly problem: unknown;
  readonly refresh: () => void;
  /** Does something, keeps what went wrong, and reads again. */
  readonly run: (act: () => Promise<unknown>) => Promise<void>;
}

/** Reads it; anew where `key` changes. */
export function useLoaded<T>(key: string, read: () => Promise<T>): Loaded<T> {
  const [value, setValue] = useState<T>();
  const [problem, setProblem] = useState<unknown>();
  const [round, setRound] = useState(0);
  const reading = useEffectEvent(read);
  const which = `${round} ${key}`;
  useEffect(() => {
    let isGone = which === "";
    reading().then(
      (found) => !isGone && setValue(found),
      (error: unknown) => !isGone && setProblem(error),
    );
    return () => {
      isGone = true;
    };
  }, [which]);
  const refresh = useCallback(() => {
    setProblem(undefined);
    setRound((before) => before + 1);
  }, []);
  const run = async (act: () => Promise<unknown>): Promise<void> => {
    try {
      await act();
      refresh();
    } catch (error) {
      setProblem(error);
    }
  };
  return { value, problem, refresh, run };
}
