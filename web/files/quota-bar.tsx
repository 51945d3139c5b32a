// How full a space is, what takes it, and what to do when it is full.
import { type ReactNode } from "react";
import type { QuotaFacts } from "#wire/webapi/files.ts";
import { goTo } from "./place-in-address.ts";
import { bytesText, counted, isGroup } from "./words.ts";

const NEARLY_FULL = 0.9;

/** A root as its bar shows it. */
export interface Space {
  readonly quota: QuotaFacts;
  /** True where the person may delete what is in it, and see its trash. */
  readonly mayDelete: boolean;
}

/** The bar with its words; `owner` is empty for one's own space. */
export function QuotaBar(props: { readonly space: Space | undefined; readonly owner: string }): ReactNode {
  const { space, owner } = props;
  if (space === undefined) return null;
  const { quota } = space;
  const { quota_bytes: whole, used_bytes: used, trash_bytes: trash, uploads_bytes: uploads } = quota;
  const part = whole === 0 ? 1 : used / whole;
  const parts = [
    ...(trash > 0 ? [`trash ${bytesText(trash)}`] : []),
    ...(uploads > 0 ? [`uploads under way ${bytesText(uploads)}`] : []),
  ];
  return (
    <div className={part >= NEARLY_FULL ? "quota full" : "quota"}>
      {owner !== "" && <p className="quiet">The space of {owner}</p>}
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
      {parts.length > 0 && <p className="quiet quota-parts">of it {parts.join(", ")}</p>}
      <Trouble space={space} part={part} owner={owner} />
      {owner !== "" && space.mayDelete && (
        <button type="button" onClick={() => goTo({ kind: "trash", root: owner })}>
          Look at its trash
        </button>
      )}
    </div>
  );
}

function Trouble(props: { readonly space: Space; readonly part: number; readonly owner: string }): ReactNode {
  const { space, part, owner } = props;
  const { inodes, inode_limit: limit, trash_bytes: trash } = space.quota;
  const isOwn = owner === "";
  const isCrowded = limit > 0 && inodes >= NEARLY_FULL * limit;
  if (part < NEARLY_FULL && !isCrowded) return null;
  const isFull = part >= 1 || (limit > 0 && inodes >= limit);
  const what = isOwn ? "Your space" : "This space";
  return (
    <>
      <p className={isFull ? "problem" : "warning"}>
        {isFull ? `■ ${what} is full: nothing more can be stored.` : `▲ ${what} is nearly full.`}{" "}
        {isCrowded &&
          `It holds ${inodes.toLocaleString("en")} of ${counted(limit, "file and folder", "files and folders")}. `}
        {space.mayDelete
          ? trash > 0
            ? `The trash takes ${bytesText(trash)} of it.`
            : "Delete something, or ask your administrator for more."
          : isGroup(owner)
            ? "Members who may write in it can make room."
            : "Its owner can make room."}
      </p>
      {isOwn && trash > 0 && (
        <button type="button" onClick={() => goTo({ kind: "trash", root: "" })}>
          Look at the trash
        </button>
      )}
    </>
  );
}
