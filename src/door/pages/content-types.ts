// Which bytes of users a browser may show by itself: the table is ours, never the file's word.

/** How bytes leave. */
export interface ContentType {
  readonly type: string;
  /** False for what is only ever saved, or drawn by an <img>. */
  readonly isShown: boolean;
}

const TEXT = "text/plain; charset=utf-8";

const SHOWN: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  avif: "image/avif",
  bmp: "image/bmp",
  mp3: "audio/mpeg",
  m4a: "audio/mp4",
  aac: "audio/aac",
  flac: "audio/flac",
  oga: "audio/ogg",
  ogg: "audio/ogg",
  opus: "audio/ogg",
  wav: "audio/wav",
  mp4: "video/mp4",
  m4v: "video/mp4",
  mov: "video/quicktime",
  ogv: "video/ogg",
  webm: "video/webm",
  txt: TEXT,
  md: TEXT,
  csv: TEXT,
  log: TEXT,
};

/** Types for saving and for <img>: an SVG is a program where it is a page of its own. */
const SAVED: Readonly<Record<string, string>> = {
  svg: "image/svg+xml",
  pdf: "application/pdf",
  zip: "application/zip",
};

/** The type by a name's ending. */
export function contentTypeOfName(name: string): ContentType {
  const ending = /\.([^.]{1,8})$/u.exec(name)?.[1]?.toLowerCase() ?? "";
  const shown = Object.hasOwn(SHOWN, ending) ? SHOWN[ending] : undefined;
  if (shown !== undefined) return { type: shown, isShown: true };
  const saved = Object.hasOwn(SAVED, ending) ? SAVED[ending] : undefined;
  return { type: saved ?? "application/octet-stream", isShown: false };
}

/** The Content-Disposition of a name (RFC 6266): no letter of it can end the header or be markup. */
export function dispositionOf(name: string, isShown: boolean): string {
  const plain = name.replace(/[^A-Za-z0-9 ._-]/gu, "_");
  const exact = encodeURIComponent(name).replace(
    /['()*]/gu,
    (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `${isShown ? "inline" : "attachment"}; filename="${plain}"; filename*=UTF-8''${exact}`;
}

/** Headers of every answer with a user's bytes: no browser may run them. */
export const USER_BYTES_HEADERS: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "cache-control": "private, no-cache",
};
