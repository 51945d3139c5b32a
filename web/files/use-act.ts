// Something that a person asks for once: while it is under way it is not asked again.
import { useState } from "react";

/** The way to do it, and what has become of it. */
export interface Act<Given extends readonly unknown[]> {
  readonly act: (...given: Given) => Promise<void>;
  readonly isBusy: boolean;
  readonly problem: unknown;
}

/** Runs it; a rejection is the problem until the next run. */
export function useAct<Given extends readonly unknown[]>(
  run: (...given: Given) => Promise<void>,
): Act<Given> {
  const [problem, setProblem] = useState<unknown>();
  const [isBusy, setIsBusy] = useState(false);
  const act = async (...given: Given): Promise<void> => {
    setIsBusy(true);
    setProblem(undefined);
    try {
      await run(...given);
    } catch (error) {
      setProblem(error);
    } finally {
      setIsBusy(false);
    }
  };
  return { act, isBusy, problem };
}
