// One link in a list: what it opens, how far it is used up, and its end.
import { type ReactNode } from "react";
import type { LinkFacts } from "#wire/webapi/file-access.ts";
import { bytesText, counted, exactTime, momentText, nameOf, shownName, timeText } from "./words.ts";

/** What a link lets people do, in words. */
function linkUse(link: LinkFacts): string {
  const { drop, has_password: hasPassword, max_downloads: most, downloads } = link;
  const what = drop ? "Others can send files" : "Others can read";
  const used = drop
    ? `${link.files} of ${counted(link.max_files, "file")}, ${bytesText(link.bytes)} of ${bytesText(link.max_bytes)} sent`
    : most === 0
      ? counted(downloads, "download")
      : `${downloads} of ${counted(most, "download")}`;
  return `${what}${hasPassword ? " with a password" : ""} · ${used}`;
}

/** Shows it. */
export function LinkRow(props: {
  readonly link: LinkFacts;
  readonly nowMs: number;
  readonly onOpen?: () => void;
  readonly onRevoke: () => void;
}): ReactNode {
  const { link, nowMs } = props;
  const { path, created_ms: createdMs, ends_ms: endsMs } = link;
  const name = path === "/" ? "All my files" : shownName(nameOf(path));
  const isOver = endsMs !== 0 && endsMs <= nowMs;
  return (
    <li>
      <div>
        {props.onOpen !== undefined && (
          <button type="button" className="plain name" title={shownName(path)} onClick={props.onOpen}>
            {name}
          </button>
        )}
        <span className={props.onOpen === undefined ? "" : "quiet"}>{linkUse(link)}</span>
        <span className="quiet">
          Made <span title={exactTime(createdMs)}>{timeText(createdMs, nowMs)}</span> ·{" "}
          {endsMs === 0 ? "no end" : `${isOver ? "ended" : "ends"} ${momentText(endsMs)}`}
        </span>
      </div>
      <button type="button" onClick={props.onRevoke} aria-label={`End the link to ${name}`}>
        End
      </button>
    </li>
  );
}
