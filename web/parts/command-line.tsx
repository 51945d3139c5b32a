// A command to run on a machine, with a copy button.
import type { ReactNode } from "react";
import { CopyButton } from "./copy-button.tsx";

/** The command with its copy button. */
export function CommandLine({ command }: { readonly command: string }): ReactNode {
  return (
    <p className="command-line">
      <code>{command}</code> <CopyButton text={() => command} />
    </p>
  );
}
