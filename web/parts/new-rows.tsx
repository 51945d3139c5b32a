// The button behind which new rows wait while somebody points at the old ones.
import { Button } from "@mantine/core";
import type { ReactNode } from "react";

/** Lies over the rows, so that nothing moves when it comes; nothing while none wait. */
export function NewRows({
  waiting,
  onShow,
}: {
  readonly waiting: number;
  readonly onShow: () => void;
}): ReactNode {
  return (
    <div className="new-rows" role="status">
      {waiting === 0 ? null : (
        <Button size="compact-sm" onClick={onShow}>
          {waiting.toLocaleString()} new
        </Button>
      )}
    </div>
  );
}
