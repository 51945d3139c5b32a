// Copies a text and confirms it, also over plain HTTP, where browsers offer no clipboard.
import { Button } from "@mantine/core";
import { type ReactNode, useEffect, useState } from "react";

const SAID_MS = 2_000;

/** `text` is called at the click, since the text may be long. */
export function CopyButton({
  text,
  disabled = false,
}: {
  readonly text: () => string;
  readonly disabled?: boolean;
}): ReactNode {
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (said === "") return;
    const timer = setTimeout(() => setSaid(""), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async (): Promise<void> => setSaid((await copied(text())) ? "Copied" : "Copying was refused");
  return (
    <>
      <Button
        variant="default"
        size="compact-sm"
        className="in-line"
        disabled={disabled}
        onClick={() => void copy()}
      >
        Copy
      </Button>
      <span className="quiet small" role="status">
        {said}
      </span>
    </>
  );
}

async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedBySelection(text);
  }
}

/** Copies without a secure context. */
function copiedBySelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.style.position = "fixed";
  area.style.opacity = "0";
  document.body.append(area);
  area.select();
  // The only way without a secure context.
  // oxlint-disable-next-line typescript/no-deprecated
  const isDone = document.execCommand("copy");
  area.remove();
  return isDone;
}
