// One file or folder as a row of a list, or as a tile.
import { type ReactNode } from "react";
import type { FileEntry } from "#wire/webapi/files.ts";
import { addressOf, type Place } from "./api.ts";
import { previewKind } from "./preview.tsx";
import { below, bytesText, exactTime, shownName, timeText } from "./words.ts";

/** Larger pictures are not drawn as tiles: the browser would load all of them. */
const THUMBNAIL_MAX_BYTES = 3_000_000;

/** How an entry is shown. */
export interface EntryProps {
  readonly entry: FileEntry;
  readonly here: Place;
  readonly index: number;
  readonly nowMs: number;
  readonly isActive: boolean;
  readonly isSelected: boolean;
  readonly isTile: boolean;
  readonly style: {
    readonly left: string;
    readonly top: number;
    readonly width: string;
    readonly height: number;
  };
  readonly onToggle: () => void;
  readonly onOpen: () => void;
}

/** Shows it. */
export function Entry(props: EntryProps): ReactNode {
  const { entry, index, isActive, isSelected, nowMs } = props;
  const { size, changed_ms: changedMs } = entry;
  return (
    <div
      id={`entry-${index}`}
      data-index={index}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={isSelected}
      className={`entry${isActive ? " active" : ""}`}
      style={props.style}
    >
      <NameCell {...props} />
      <div role="gridcell" className="cell-size">
        {bytesText(size)}
      </div>
      <div role="gridcell" className="cell-changed" title={exactTime(changedMs)}>
        {timeText(changedMs, nowMs)}
      </div>
    </div>
  );
}

function NameCell({ entry, here, isSelected, isTile, onToggle, onOpen }: EntryProps): ReactNode {
  const { name, kind, size, shared, damaged } = entry;
  const place = { root: here.root, path: below(here.path, name) };
  const hasPicture =
    isTile && kind === "file" && previewKind(name) === "picture" && size <= THUMBNAIL_MAX_BYTES;
  const source = addressOf("/api/content", place, { view: "1", v: entry.etag });
  return (
    <div role="gridcell" className="cell-name">
      <input
        type="checkbox"
        tabIndex={-1}
        checked={isSelected}
        aria-label={`Select ${shownName(name)}`}
        onChange={onToggle}
      />
      {hasPicture ? (
        <img className="thumbnail" src={source} alt="" loading="lazy" />
      ) : (
        <Icon isFolder={kind === "folder"} />
      )}
      <button
        type="button"
        tabIndex={-1}
        className="plain name"
        title={shownName(name)}
        onClick={({ detail }) => detail < 2 && onOpen()}
      >
        {shownName(name)}
      </button>
      {shared.length > 0 && (
        <span className="mark" title={`Shared with ${shared.join(", ")}`}>
          ◆ shared
        </span>
      )}
      {damaged === true && <span className="mark problem">■ damaged</span>}
    </div>
  );
}

/** The outline of a folder or a file. */
export function Icon({ isFolder }: { readonly isFolder: boolean }): ReactNode {
  return (
    <svg className={isFolder ? "icon folder" : "icon"} viewBox="0 0 24 24" aria-hidden="true">
      {isFolder ? (
        <path d="M3 6a2 2 0 0 1 2-2h4l2 2h8a2 2 0 0 1 2 2v9a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2z" />
      ) : (
        <path d="M6 3h8l4 4v13a1 1 0 0 1-1 1H6a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zm8 0v4h4" />
      )}
    </svg>
  );
}
