// The last thing that was done, with a way back where there is one.
import { type ReactNode, useCallback, useEffect, useState } from "react";
import { shownName } from "./words.ts";

const SHOWN_MS = 12_000;

/** A message at the bottom of the page. */
export interface Message {
  readonly text: string;
  readonly isProblem?: boolean;
  /** Takes back what was done. */
  readonly undo?: () => Promise<void>;
}

/** The message in force, and the way to say another. */
export function useMessage(): {
  readonly message: Message | undefined;
  readonly say: (message: Message | undefined) => void;
} {
  const [message, setMessage] = useState<Message>();
  const say = useCallback((next: Message | undefined) => setMessage(next), []);
  useEffect(() => {
    if (message === undefined || message.isProblem === true) return undefined;
    const timer = setTimeout(() => setMessage(undefined), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [message]);
  return { message, say };
}

/** Shows it. */
export function Toast(props: {
  readonly message: Message | undefined;
  readonly say: (message: Message | undefined) => void;
  /** Something was taken back, maybe not all: what is shown has to be read anew. */
  readonly onUndone: () => void;
}): ReactNode {
  const { message, say, onUndone } = props;
  const undo = async (): Promise<void> => {
    const back = message?.undo;
    say(undefined);
    try {
      await back?.();
    } catch (error) {
      say({ text: error instanceof Error ? error.message : String(error), isProblem: true });
    } finally {
      onUndone();
    }
  };
  return (
    <div className="toast-place" role="status">
      {message !== undefined && (
        <div className={message.isProblem === true ? "toast problem" : "toast"}>
          <span>
            {message.isProblem === true && "■ "}
            {shownName(message.text)}
          </span>
          {message.undo !== undefined && (
            <button type="button" onClick={() => void undo()}>
              Undo
            </button>
          )}
          <button type="button" className="plain" onClick={() => say(undefined)} aria-label="Dismiss">
            ✕
          </button>
        </div>
      )}
    </div>
  );
}
