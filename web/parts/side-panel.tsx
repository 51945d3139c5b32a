// A panel beside the page: takes and returns the focus, and closes with Escape.
import { CloseButton } from "@mantine/core";
import { type ReactNode, useEffect, useRef } from "react";

/** Opens at the right side; on narrow screens over everything. */
export function SidePanel({
  title,
  onClose,
  children,
}: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}): ReactNode {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    heading.current?.focus({ preventScroll: true });
    return () => {
      // Only if nothing else has the focus.
      const isLost = document.activeElement === document.body || document.activeElement === null;
      if (isLost && before instanceof HTMLElement) before.focus({ preventScroll: true });
    };
  }, []);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      // An open dialog or menu above it closes first.
      if (event.key !== "Escape" || event.defaultPrevented) return;
      if (!isAnythingOver()) onClose();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, [onClose]);
  return (
    <aside className="side-panel" aria-label={title}>
      <header className="side-panel-head">
        <h2 ref={heading} tabIndex={-1}>
          {title}
        </h2>
        <CloseButton aria-label="Close" onClick={onClose} />
      </header>
      {children}
    </aside>
  );
}

/** Closed lists stay in the page, hidden. */
function isAnythingOver(): boolean {
  const found = document.querySelectorAll("[role=dialog], [role=menu], [role=listbox]");
  return [...found].some((element) => element.checkVisibility());
}
