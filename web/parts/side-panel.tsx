// A panel beside the page: takes the focus when it opens, gives it back when it closes, and closes with Escape.
import { CloseButton } from "@mantine/core";
import { type ReactNode, useEffect, useRef } from "react";

/** Stands at the right side; on narrow screens over everything. */
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
      // Only when nothing else has taken the focus meanwhile.
      const isLost = document.activeElement === document.body || document.activeElement === null;
      if (isLost && before instanceof HTMLElement) before.focus({ preventScroll: true });
    };
  }, []);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      // A dialog or a menu that is open over it closes first.
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

/** Lists that are shut stay in the page, out of sight. */
function isAnythingOver(): boolean {
  const found = document.querySelectorAll("[role=dialog], [role=menu], [role=listbox]");
  return [...found].some((element) => element.checkVisibility());
}
