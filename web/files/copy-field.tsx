// A text that is shown once, with a button that copies it.
import { type ReactNode, useId, useRef, useState } from "react";

/** Shows it. */
export function CopyField({ label, text }: { readonly label: string; readonly text: string }): ReactNode {
  const input = useRef<HTMLInputElement>(null);
  const [said, setSaid] = useState("");
  const id = useId();
  const copy = async (): Promise<void> => {
    input.current?.select();
    try {
      await navigator.clipboard.writeText(text);
      setSaid("Copied.");
    } catch {
      // Only pages over HTTPS may write there by themselves.
      setSaid("It is selected: copy it with Ctrl+C.");
    }
  };
  return (
    <div className="copy-field">
      <label htmlFor={id}>{label}</label>
      <div>
        <input id={id} ref={input} readOnly value={text} onFocus={(event) => event.target.select()} />
        <button type="button" onClick={() => void copy()} aria-label={`Copy: ${label}`}>
          Copy
        </button>
      </div>
      <p className="quiet" role="status">
        {said}
      </p>
    </div>
  );
}
