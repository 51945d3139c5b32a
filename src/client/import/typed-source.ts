// The source of an import as typed: a folder, or an address of SFTP, WebDAV or S3, never with a secret in it.
import { ClientError } from "#client/terminal/client-error.ts";
import type { StoreSettings } from "#storage/object-store/store-settings.ts";
import { storeSettings } from "#storage/object-store/store-settings.ts";
import { isLoopback } from "./http-exchange.ts";
import { isSshWord, noSshWord, type SftpPlace } from "./sftp-source.ts";

/** A source before it is opened. */
export type TypedSource =
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "sftp"; readonly place: Omit<SftpPlace, "identityFile" | "knownHostsFile"> }
  | { readonly kind: "webdav"; readonly url: URL; readonly user: string | undefined }
  | { readonly kind: "s3"; readonly settings: StoreSettings };

const FORMS =
  "Name a folder, sftp://USER@HOST/PATH, https://USER@HOST/PATH (WebDAV), or s3://BUCKET/PREFIX?endpoint=https://HOST&credentials=FILE.";

/** Reads the word. Throws ClientError USAGE, never with a password that stood in it. */
export function typedSource(word: string): TypedSource {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(word)?.[1]?.toLowerCase();
  if (word === "") throw wrong("the source is empty");
  if (scheme === undefined) return { kind: "folder", path: word };
  if (scheme === "s3") return { kind: "s3", settings: storeSettings(word) };
  const url = URL.canParse(word) ? new URL(word) : undefined;
  if (url === undefined || url.hostname === "") throw wrong("the source is no valid address");
  if (url.password !== "") {
    throw new ClientError(
      "USAGE",
      "a password must not stand in the address, which other users of the machine can read",
      {
        todo: "Leave it out: it is asked for, or comes from --password-file.",
      },
    );
  }
  if (url.search !== "" || url.hash !== "")
    throw wrong("the source is more than scheme, user, host and path");
  switch (scheme) {
    case "sftp":
      return { kind: "sftp", place: sftpPlace(url) };
    case "https":
    case "davs":
      return webDav(url, "https:");
    case "http":
    case "dav":
      if (isLoopback(url.hostname)) return webDav(url, "http:");
      throw new ClientError("USAGE", "files and the password would go over the network in the clear", {
        todo: "Name an https:// address.",
      });
    default:
      throw wrong(`${scheme}:// is no source of an import`);
  }
}

function sftpPlace(url: URL): Omit<SftpPlace, "identityFile" | "knownHostsFile"> {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const user = url.username === "" ? undefined : decoded(url.username);
  if (!isSshWord(host) || (user !== undefined && !isSshWord(user))) throw noSshWord();
  // As curl and others have it: a path begins at the top, and /~/ at the home folder.
  const path = decoded(url.pathname);
  const atHome = path === "/~" || path === "/~/" ? "" : path.startsWith("/~/") ? path.slice(3) : undefined;
  return {
    host,
    port: url.port === "" ? undefined : Number(url.port),
    user,
    path: atHome ?? (path === "" ? "/" : path),
  };
}

function webDav(url: URL, protocol: "http:" | "https:"): TypedSource {
  const user = url.username === "" ? undefined : decoded(url.username);
  const port = url.port === "" ? "" : `:${url.port}`;
  return { kind: "webdav", url: new URL(`${protocol}//${url.hostname}${port}${url.pathname}`), user };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw wrong("the source is no valid address");
  }
}

function wrong(message: string): ClientError {
  return new ClientError("USAGE", message, { todo: FORMS });
}
