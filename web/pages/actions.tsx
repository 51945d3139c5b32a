// Actions on nodes: put one together and run it, and see what was run before.
import type { ReactNode } from "react";
import { ActionComposer } from "../parts/action-composer.tsx";
import { ActionRecords } from "../parts/action-records.tsx";

/** The page at "/actions"; "?do=restart&node=n1" begins with that. */
export function Page(): ReactNode {
  return (
    <>
      <h1>Actions</h1>
      <ActionComposer />
      <h2>What was run</h2>
      <ActionRecords />
    </>
  );
}
