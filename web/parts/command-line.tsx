// A command to be typed on a machine, ready to be copied.
import type { ReactNode } from "react";
import { CopyButton } from "./copy-button.tsx";

/** The command and the button that copies it. */
export function CommandLine({ command }: { readonly command: string }): ReactNode {
  return (
    <p className="command-line">
      <code>{command}</code> <CopyButton text={() => command} />
    </p>
  );
}
