// How full one's space is, and what to do when it is.
import { type ReactNode } from "react";
import type { QuotaFacts } from "#wire/webapi/files.ts";
import { goTo } from "./place-in-address.ts";
import { bytesText } from "./words.ts";

const NEARLY_FULL = 0.9;

/** The bar with its words. */
export function QuotaBar({ quota }: { readonly quota: QuotaFacts | undefined }): ReactNode {
  if (quota === undefined) return null;
  const { quota_bytes: whole, used_bytes: used, trash_bytes: trash } = quota;
  const part = whole === 0 ? 1 : used / whole;
  const isFull = part >= 1;
  return (
    <div className="quota">
      <meter
        min={0}
        max={Math.max(whole, 1)}
        high={NEARLY_FULL * whole}
        value={Math.min(used, whole)}
        aria-label="Space used"
      />
      <p>
        {bytesText(used)} of {bytesText(whole)} used
      </p>
      {part >= NEARLY_FULL && (
        <p className={isFull ? "problem" : "warning"}>
          {isFull ? "■ Your space is full: nothing more can be stored." : "▲ Your space is nearly full."}{" "}
          {trash > 0 ? `The trash takes ${bytesText(trash)} of it.` : "Delete something, or ask for more."}
        </p>
      )}
      {part >= NEARLY_FULL && trash > 0 && (
        <button type="button" onClick={() => goTo({ kind: "trash" })}>
          Look at the trash
        </button>
      )}
    </div>
  );
}
