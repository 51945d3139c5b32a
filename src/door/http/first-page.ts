// What a person sees who opens a door's address in a browser: how to reach their files.
import { createHash } from "node:crypto";

const STYLE = `
:root{color-scheme:light dark;--line:#d4d4d4;--soft:#5c5c5c;--accent:#1a7f37}
@media (prefers-color-scheme:dark){:root{--line:#3a3a3a;--soft:#a3a3a3;--accent:#57ab5a}}
body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:44rem;padding:2rem 1rem 4rem}
h1{font-size:28px;margin:0 0 .5rem}h2{font-size:20px;margin:2rem 0 .5rem}
code{font:14px ui-monospace,monospace;overflow-wrap:anywhere}
.address{border:1px solid var(--line);border-left:4px solid var(--accent);border-radius:6px;padding:.75rem 1rem}
dt{font-weight:600;margin-top:1rem}dd{margin:0}p.soft{color:var(--soft)}
`;

/** Headers of the page: nothing runs in it, and nothing is loaded. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": `default-src 'none'; style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "cache-control": "no-cache",
};

/** The page of a door with that address. */
export function firstPage(publicUrl: string): string {
  const url = escaped(`${publicUrl}/dav/`);
  const windows = escaped(windowsPlace(publicUrl));
  const linux = escaped(publicUrl.replace(/^http/u, "dav"));
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Grove: your files</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>Your files are here</h1>
<p>Connect this computer or phone to them by WebDAV, with this address:</p>
<p class="address"><code>${url}</code></p>
<h2>1. Make an app password</h2>
<p>In a terminal where you are signed in to Grove: <code>grove app-password create NAME</code>. It is shown once.
Make one for each device, so that a lost one can be shut out alone.</p>
<h2>2. Connect</h2>
<p>Your name is your e-mail address; the password is the app password.</p>
<dl>
<dt>Windows</dt><dd>Explorer, This PC, Map network drive: <code>${windows}</code></dd>
<dt>macOS</dt><dd>Finder, Go, Connect to Server: <code>${url}</code></dd>
<dt>GNOME Files</dt><dd>Other Locations, Connect to Server: <code>${linux}/dav/</code></dd>
<dt>Linux, as a folder</dt><dd><code>mount -t davfs ${url} /mnt/grove</code></dd>
<dt>Any system, in a terminal</dt><dd><code>rclone config</code>: storage webdav, vendor other, url <code>${url}</code></dd>
<dt>iOS and Android</dt><dd>An app that speaks WebDAV, with the address above</dd>
</dl>
<p class="soft">An app password opens your files alone: it cannot change your quota, shares or sign-in.</p>
</main>
</body>
</html>
`;
}

/** As Explorer's redirector writes an address: by http as it is, by https with "@SSL". */
function windowsPlace(publicUrl: string): string {
  const { protocol, hostname, port } = new URL(publicUrl);
  if (protocol === "http:") return `${publicUrl}/dav/`;
  return `\\\\${hostname}@SSL${port === "" ? "" : `@${port}`}\\dav`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/gu, (letter) => `&#${letter.charCodeAt(0)};`);
}
