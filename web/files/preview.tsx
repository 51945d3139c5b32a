// A look at a file: pictures, sound, video, PDF and text; the rest is downloaded.
import { type KeyboardEvent, lazy, type ReactNode, Suspense, useEffect, useState } from "react";
import type { FileEntry } from "#wire/webapi/files.ts";
import { addressOf, door, type Place, textOf } from "./api.ts";
import { Dialog } from "./dialog.tsx";
import { Problem } from "./problem.tsx";
import { bytesText, shownName } from "./words.ts";

/** Its code is ten times that of the page, and comes with the first PDF. */
const PdfPreview = lazy(() => import("./pdf-preview.tsx"));

const TEXT_BYTES = 262_144;

const REPLACED = "This file has been replaced while it was open.";
const UNPLAYABLE = "Your browser cannot play this file. Download it to open it.";

/** How a file is shown. */
export type PreviewKind = "audio" | "none" | "pdf" | "picture" | "text" | "video";

/** What a name's ending lets the page show. */
export function previewKind(name: string): PreviewKind {
  const ending = /\.([^.]+)$/u.exec(name)?.[1]?.toLowerCase() ?? "";
  if (/^(?:png|jpe?g|gif|webp|avif|bmp|svg)$/u.test(ending)) return "picture";
  if (/^(?:mp3|m4a|aac|flac|oga|ogg|opus|wav)$/u.test(ending)) return "audio";
  if (/^(?:mp4|m4v|mov|ogv|webm)$/u.test(ending)) return "video";
  if (ending === "pdf") return "pdf";
  return /^(?:txt|md|csv|log|json|xml|ya?ml|toml|ini|conf|html?|css|[cm]?[jt]sx?|py|rs|go|c|h|cpp|java|sh|sql)$/u.test(
    ending,
  )
    ? "text"
    : "none";
}

/** The dialog with the file. */
export function Preview(props: {
  readonly entry: FileEntry;
  readonly place: Place;
  readonly onClose: () => void;
  /** Goes to the file before or after it; nothing for a file that stands alone. */
  readonly onStep?: (by: -1 | 1) => void;
}): ReactNode {
  const { entry, place, onStep } = props;
  const kind = previewKind(entry.name);
  const source = addressOf("/api/content", place, { view: "1", v: entry.etag });
  const onKeyDown = ({ key, target }: KeyboardEvent): void => {
    // Within a text, a video and the pages of a PDF, arrows are theirs.
    if (target instanceof Element && target.closest("textarea, video, audio, .pdf") !== null) return;
    if (key === "ArrowLeft") onStep?.(-1);
    if (key === "ArrowRight") onStep?.(1);
  };
  return (
    <Dialog title={entry.name} onClose={props.onClose} onKeyDown={onKeyDown} isWide>
      <div className="preview">
        {kind === "picture" && <Picture key={source} source={source} name={entry.name} />}
        {kind === "pdf" && (
          <Suspense fallback={<p>Reading the PDF …</p>}>
            <PdfPreview key={source} source={source} />
          </Suspense>
        )}
        {(kind === "audio" || kind === "video") && (
          <Player key={source} kind={kind} entry={entry} place={place} />
        )}
        {kind === "text" && <TextPreview key={source} place={place} size={entry.size} />}
        {kind === "none" && <p>This kind of file is not shown here. Download it to open it.</p>}
      </div>
      <div className="actions">
        <span className="quiet">{bytesText(entry.size)}</span>
        {onStep !== undefined && (
          <>
            <button type="button" onClick={() => onStep(-1)}>
              ← Previous
            </button>
            <button type="button" onClick={() => onStep(1)}>
              Next →
            </button>
          </>
        )}
        <a className="button main" href={addressOf("/api/content", place)} download={entry.name}>
          Download
        </a>
      </div>
    </Dialog>
  );
}

/** A picture, or the word that its bytes are none. */
function Picture({ source, name }: { readonly source: string; readonly name: string }): ReactNode {
  const [isBroken, setIsBroken] = useState(false);
  if (isBroken) return <p>This picture cannot be shown. Download it to open it.</p>;
  return <img src={source} alt={shownName(name)} onError={() => setIsBroken(true)} />;
}

/** Sound or video; where it stops for a fault, why, and what can be done. */
function Player(props: {
  readonly kind: "audio" | "video";
  readonly entry: FileEntry;
  readonly place: Place;
}): ReactNode {
  const { kind: Kind, entry, place } = props;
  const [etag, setEtag] = useState(entry.etag);
  const [hasBegun, setHasBegun] = useState(false);
  const [fault, setFault] = useState<{ readonly why: unknown; readonly newer: string }>();
  // Browsers tell of a fault, and not that the door has no more of this version.
  const ask = async (): Promise<void> => {
    try {
      const { etag: newer } = await door.stat(place);
      // The list from which it was opened may be old.
      if (newer !== etag && !hasBegun) return setEtag(newer);
      setFault({ why: new Error(newer === etag ? UNPLAYABLE : REPLACED), newer });
    } catch (why) {
      setFault({ why, newer: etag });
    }
  };
  if (fault !== undefined) {
    const again = (): void => {
      setEtag(fault.newer);
      setHasBegun(false);
      setFault(undefined);
    };
    return (
      <div>
        <Problem of={fault.why} />
        <button type="button" onClick={again}>
          Play from the beginning
        </button>
      </div>
    );
  }
  // Browsers read on in whatever there is by then, and play noise or stop.
  const source = addressOf("/api/content", place, { view: "1", version: etag });
  return (
    <Kind
      src={source}
      controls
      preload="metadata"
      aria-label={shownName(entry.name)}
      onLoadedMetadata={() => setHasBegun(true)}
      onError={() => void ask()}
    >
      {/* Nobody has captions of what people keep in their files. */}
      <track kind="captions" />
    </Kind>
  );
}

function TextPreview({ place, size }: { readonly place: Place; readonly size: number }): ReactNode {
  const { root, path } = place;
  const [text, setText] = useState<string>();
  const [problem, setProblem] = useState<unknown>();
  useEffect(() => {
    let isGone = false;
    textOf({ root, path }, TEXT_BYTES).then(
      (found) => !isGone && setText(found),
      (error: unknown) => !isGone && setProblem(error),
    );
    return () => {
      isGone = true;
    };
  }, [root, path]);
  if (problem !== undefined) return <Problem of={problem} />;
  return (
    <>
      <textarea
        readOnly
        rows={24}
        spellCheck={false}
        aria-label="Text of the file"
        value={text ?? "Reading …"}
      />
      {size > TEXT_BYTES && <p className="quiet">The first {bytesText(TEXT_BYTES)} are shown.</p>}
    </>
  );
}
