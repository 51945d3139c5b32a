// What is being uploaded: how far, what failed and what to do, and the question about names that are taken.
import { type ReactNode, useEffect, useState, useSyncExternalStore } from "react";
import { type CutUpload, cutUploads, endUploads } from "./cut-uploads.ts";
import { Dialog } from "./dialog.tsx";
import { goTo } from "./place-in-address.ts";
import { type UploadItem, uploads } from "./uploads.ts";
import { bytesText, counted, folderOf, nameOf, shownName } from "./words.ts";

const SHOWN_MAX = 50;

/** The panel; nothing while nothing was uploaded. */
export function UploadPanel(): ReactNode {
  const view = useSyncExternalStore(uploads.subscribe, uploads.view);
  if (view.items.length + view.unmade.length === 0) return <CutPanel />;
  const failed = view.items.filter(({ state }) => state === "failed");
  const problems = [...view.unmade, ...failed];
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
        : isOver && view.unmade.length > 0
          ? `${counted(view.unmade.length, "folder")} could not be made`
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
            {view.isRetrying &&
              view.stopped === undefined &&
              " · The server does not answer at the moment; it is asked again."}
          </p>
        </>
      )}
      {view.stopped !== undefined && (
        <p className="problem" role="alert">
          ■ {view.stopped.text}
        </p>
      )}
      <div className="actions">
        {view.stopped?.isFull === true && (
          <button type="button" onClick={() => goTo({ kind: "trash", root: "" })}>
            Look at the trash
          </button>
        )}
        {(view.stopped !== undefined || (isOver && problems.length > 0)) && (
          <button type="button" className="main" onClick={() => uploads.retry()}>
            Try again
          </button>
        )}
      </div>
      {view.stopped === undefined && problems.length > 0 && (
        <ul className="quiet">
          {problems.slice(0, SHOWN_MAX).map(({ place, problem }, at) => (
            <li key={at}>{shownName(`${nameOf(place.path)}: ${problem}`)}</li>
          ))}
        </ul>
      )}
      {taken.length > 0 && <TakenDialog items={taken} />}
    </section>
  );
}

/** Large uploads of a page that was closed: their files have to be chosen again. */
function CutPanel(): ReactNode {
  const [cut, setCut] = useState<readonly CutUpload[]>([]);
  useEffect(() => void cutUploads().then(setCut), []);
  const [first] = cut;
  if (first === undefined) return null;
  const forget = (): void => {
    endUploads(cut.map(({ key }) => key));
    setCut([]);
  };
  return (
    <section className="uploads" aria-label="Uploads">
      <div className="uploads-head">
        <h2>{counted(cut.length, "upload")} cut off</h2>
        <button type="button" className="plain" onClick={forget}>
          Forget
        </button>
      </div>
      <p>
        <b>{shownName(first.name)}</b>
        {cut.length > 1 && ` and ${counted(cut.length - 1, "other")}`} did not arrive whole. Choose the same
        file again in {folderOf(first.path) === "/" ? "the top folder" : shownName(folderOf(first.path))}, and
        it goes on where it was.
      </p>
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
        The folder has <b>{shownName(nameOf(first.place.path))}</b> already. Yours has{" "}
        {bytesText(first.file.size)}.
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
