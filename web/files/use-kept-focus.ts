// Keeps the keyboard in the page: what had the focus may go with a row, a button or a whole folder.
import { useEffect } from "react";

/** Moves the focus from what has gone to the entries, or to the top of the page's main part. */
export function useKeptFocus(): void {
  useEffect(() => {
    let last: Element | null = null;
    const note = ({ target }: FocusEvent): void => {
      last = target instanceof Element ? target : null;
    };
    const look = (): void => {
      // Somebody who has clicked beside everything wants it nowhere.
      if (last === null || last.isConnected || document.activeElement !== document.body) return;
      const entries = document.querySelector<HTMLElement>('#main [role="grid"]');
      (entries ?? document.getElementById("main"))?.focus({ preventScroll: true });
    };
    const observer = new MutationObserver(look);
    observer.observe(document.body, { childList: true, subtree: true });
    document.addEventListener("focusin", note);
    return () => {
      observer.disconnect();
      document.removeEventListener("focusin", note);
    };
  }, []);
}
