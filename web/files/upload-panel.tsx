// What is being uploaded: how far, what failed and what to do, and the question about names that are taken.
import { type ReactNode, useState, useSyncExternalStore } from "react";
import { Dialog } from "./dialog.tsx";
import { type UploadItem, uploads } from "./uploads.ts";
import { bytesText, counted, nameOf } from "./words.ts";

const SHOWN_MAX = 50;

/** The panel; nothing while nothing was uploaded. */
export function UploadPanel(): ReactNode {
  const view = useSyncExternalStore(uploads.subscribe, uploads.view);
  if (view.items.length === 0) return null;
  const failed = view.items.filter(({ state }) => state === "failed");
  const taken = view.items.filter(({ state }) => state === "taken");
  const isOver = view.items.every(
    ({ state }) => state === "done" || state === "failed" || state === "skipped",
  );
  const percent = view.totalBytes === 0 ? 100 : Math.floor((100 * view.sentBytes) / view.totalBytes);
  const head =
    view.stopped !== undefined
      ? "The upload has stopped"
      : isOver && failed.length > 0
        ? `${counted(failed.length, "file")} did not arrive`
        : isOver
          ? `${counted(view.done, "file")} uploaded`
          : `Uploading: ${view.done.toLocaleString("en")} of ${counted(view.total, "file")}`;
  return (
    <section className="uploads" aria-label="Uploads">
      <div className="uploads-head">
        <h2 aria-live="polite">{head}</h2>
        <button type="button" className="plain" onClick={() => uploads.cancel()}>
          {isOver ? "Close" : "Cancel"}
        </button>
      </div>
      {!isOver && (
        <>
          <progress max={100} value={percent} aria-label="Uploaded" />
          <p className="quiet">
            {bytesText(view.sentBytes)} of {bytesText(view.totalBytes)}
            {view.isRetrying && " · The door does not answer at the moment; it is asked again."}
          </p>
        </>
      )}
      {view.stopped !== undefined && (
        <p className="problem" role="alert">
          ■ {view.stopped}
        </p>
      )}
      {(view.stopped !== undefined || (isOver && failed.length > 0)) && (
        <button type="button" onClick={() => uploads.retry()}>
          Try again
        </button>
      )}
      {failed.length > 0 && (
        <ul className="quiet">
          {failed.slice(0, SHOWN_MAX).map((item) => (
            <li key={item.id}>
              {nameOf(item.place.path)}: {item.problem}
            </li>
          ))}
        </ul>
      )}
      {taken.length > 0 && <TakenDialog items={taken} />}
    </section>
  );
}

function TakenDialog({ items }: { readonly items: readonly UploadItem[] }): ReactNode {
  const [isForAll, setIsForAll] = useState(false);
  const [first] = items;
  if (first === undefined) return null;
  const answer = (how: "both" | "replace" | "skip"): void => uploads.answer(isForAll ? items : [first], how);
  return (
    <Dialog key={first.id} title="This name is taken" onClose={() => answer("skip")}>
      <p>
        The folder has <b>{nameOf(first.place.path)}</b> already. Yours has {bytesText(first.file.size)}.
      </p>
      {items.length > 1 && (
        <label className="check">
          <input type="checkbox" checked={isForAll} onChange={(event) => setIsForAll(event.target.checked)} />
          Do the same for all {items.length.toLocaleString("en")}
        </label>
      )}
      <div className="actions">
        <button type="button" onClick={() => answer("skip")}>
          Skip
        </button>
        <button type="button" onClick={() => answer("replace")}>
          Replace
        </button>
        <button type="button" className="main" onClick={() => answer("both")}>
          Keep both
        </button>
      </div>
    </Dialog>
  );
}
