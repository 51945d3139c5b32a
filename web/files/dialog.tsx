// Dialogs: the browser's own, which keep the focus inside and end with Escape.
import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";
import { Problem } from "./problem.tsx";
import { useAct } from "./use-act.ts";
import { shownName } from "./words.ts";

/** A dialog that is open while it is shown. */
export function Dialog(props: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
  readonly isWide?: boolean;
  readonly onKeyDown?: (event: KeyboardEvent) => void;
}): ReactNode {
  const place = useRef<HTMLDialogElement>(null);
  const title = useId();
  useEffect(() => {
    const dialog = place.current;
    const before = document.activeElement;
    if (dialog?.open === false) dialog.showModal();
    // The browser gives the focus back where a dialog is closed, and not where it is taken out of the page.
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={place}
      aria-labelledby={title}
      className={props.isWide === true ? "dialog wide" : "dialog"}
      onClose={props.onClose}
      onKeyDown={props.onKeyDown}
    >
      <header>
        <h2 id={title}>{shownName(props.title)}</h2>
        <button type="button" className="plain" onClick={props.onClose} aria-label="Close">
          ✕
        </button>
      </header>
      {props.children}
    </dialog>
  );
}

/** What a dialog for one line of text asks, and does with the answer. */
export interface TextQuestion {
  readonly title: string;
  readonly label: string;
  readonly first: string;
  readonly button: string;
  readonly type?: "email" | "text";
  /** What the text has to look like, and how that is said. */
  readonly pattern: string;
  readonly patternHint: string;
  /** What is worth knowing of the text; it is no refusal. */
  readonly hint?: (text: string) => string | undefined;
  /** Rejects with what the door says. */
  readonly act: (text: string) => Promise<void>;
  readonly onClose: () => void;
  readonly children?: ReactNode;
}

/** Asks for one line of text. */
export function TextDialog(props: TextQuestion): ReactNode {
  const [text, setText] = useState(props.first);
  const input = useRef<HTMLInputElement>(null);
  const id = useId();
  const { act, isBusy, problem } = useAct(props.act);
  const { first, type = "text" } = props;
  useEffect(() => {
    // The ending of a file's name mostly stays.
    const at = first.lastIndexOf(".");
    input.current?.focus();
    if (type !== "email") input.current?.setSelectionRange(0, at > 0 ? at : first.length);
  }, [first, type]);
  const hint = props.hint?.(text.trim());
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      {props.children}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void act(text.trim());
        }}
      >
        <label htmlFor={id}>{props.label}</label>
        <input
          id={id}
          ref={input}
          type={type}
          value={text}
          required
          pattern={props.pattern}
          title={props.patternHint}
          onChange={(event) => setText(event.target.value)}
          autoComplete="off"
          spellCheck={false}
        />
        {hint !== undefined && <p className="quiet">▲ {hint}</p>}
        <Problem of={problem} />
        <div className="actions">
          <button type="button" onClick={props.onClose}>
            Cancel
          </button>
          <button type="submit" className="main" disabled={isBusy || text.trim() === ""}>
            {props.button}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
