// The pages of links: a password's form, a file, a folder, a box to drop files into, and a sentence where nothing opens.
import { createHash } from "node:crypto";
import { hrefOf } from "#door/webdav/href.ts";
import type { LinkFacts, LinkListing } from "./link-visitors.ts";

const STYLE = `
:root{color-scheme:light dark;--page:#fff;--ink:#1b1b1b;--line:#d4d4d4;--soft:#5c5c5c;--accent:#1a7f37;--on:#fff;--bad:#b42318}
@media (prefers-color-scheme:dark){:root{--page:#161616;--ink:#ededed;--line:#3a3a3a;--soft:#a8a8a8;--accent:#57ab5a;--on:#0d0d0d;--bad:#ff8f85}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;background:var(--page);color:var(--ink);margin:0 auto;max-width:52rem;padding:2rem 1rem 4rem}
h1{font-size:28px;line-height:1.25;margin:0 0 .5rem;overflow-wrap:anywhere}
a{color:var(--accent)}:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
p{overflow-wrap:anywhere}p.soft,.soft{color:var(--soft)}p.bad{color:var(--bad);font-weight:600}
nav{margin:0 0 1rem;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%}th{font-size:14px;font-weight:600;color:var(--soft);text-align:left}
th,td{border-bottom:1px solid var(--line);padding:.5rem .5rem .5rem 0;vertical-align:top}
td:first-child{overflow-wrap:anywhere}.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
label{display:block;font-weight:600;margin:1rem 0 .25rem}
input{font:inherit;color:inherit;background:var(--page);border:1px solid var(--soft);border-radius:6px;padding:.5rem;max-width:100%;width:24rem}
button,.button{display:inline-block;font:inherit;font-weight:600;color:var(--on);background:var(--accent);border:0;border-radius:6px;padding:.6rem 1rem;margin:1rem 0 0;text-decoration:none;cursor:pointer}
ul{padding:0;list-style:none}li{border-bottom:1px solid var(--line);padding:.5rem 0;overflow-wrap:anywhere}
@media (max-width:34rem){.when{display:none}}
`;

/** Characters of a name on a line: of a longer one the beginning and the end, which tells its kind. */
const NAME_SHOWN = 120;

const SCRIPT = `
const shown=(name)=>{const clean=[...name.replace(/[\\p{Cc}\\u{202A}-\\u{202E}\\u{2066}-\\u{2069}]/gu,"\\u{FFFD}")];
return clean.length>${NAME_SHOWN}?clean.slice(0,${NAME_SHOWN / 2}).join("")+" … "+clean.slice(-${NAME_SHOWN / 2}).join(""):clean.join("")};
const form=document.querySelector("form"),input=document.querySelector("input"),list=document.querySelector("ul"),said=document.querySelector("[role=status]");
form.addEventListener("submit",async(event)=>{
event.preventDefault();
const button=form.querySelector("button");button.disabled=true;let sent=0,failed=0;
for(const file of[...input.files]){
const line=document.createElement("li");const name=shown(file.name);line.textContent=name+": sending";list.append(line);said.textContent=name+": sending";
let text="the connection was lost; send it again";let isSent=false;
try{const answer=await fetch(encodeURIComponent(file.name),{method:"PUT",body:file,redirect:"error"});isSent=answer.status===201;text=isSent?"sent":(await answer.text()).trim()}catch{}
line.textContent=name+": "+text;if(isSent)sent++;else failed++}
said.textContent=sent+" sent"+(failed===0?"":", "+failed+" not sent");button.disabled=false;form.reset()});
`;

const hashed = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** Headers of these pages: nothing of others runs or is loaded, and no address is told on. */
export const LINK_PAGE_HEADERS: Readonly<Record<string, string>> = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy":
    `default-src 'none'; style-src ${hashed(STYLE)}; script-src ${hashed(SCRIPT)}; connect-src 'self'; ` +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

/** A page that says why nothing opens. */
export function sentencePage(title: string, text: string): string {
  return page(title, `<h1>${escaped(title)}</h1>\n<p>${escaped(text)}</p>`);
}

/** The form that asks for the password. */
export function passwordPage(id: string, problem: string | undefined): string {
  const told =
    problem === undefined ? "" : `<p class="bad" id="problem" role="alert">${escaped(problem)}</p>`;
  const described = problem === undefined ? "" : ' aria-invalid="true" aria-describedby="problem"';
  return page(
    "Password",
    `<h1>This link asks for a password</h1>
<p>Who gave you the link knows it.</p>
${told}
<form method="post" action="${hrefOf("/l", [id], true)}">
<label for="password">Password</label>
<input id="password" name="password" type="password" maxlength="256" autocomplete="off" required autofocus${described}>
<div><button type="submit">Open</button></div>
</form>`,
  );
}

/** The page of a link to one file. */
export function filePage(id: string, facts: LinkFacts, file: { size: number; changedMs: number }): string {
  return page(
    facts.name,
    `<h1>${escaped(facts.name)}</h1>
<p>${escaped(sizeText(file.size))}, changed ${escaped(timeText(file.changedMs))}</p>
<a class="button" href="${hrefOf("/l", [id, facts.name], false)}" download>Download</a>
${endText(facts)}`,
  );
}

/** One page of a folder. */
export function folderPage(
  id: string,
  facts: LinkFacts,
  path: readonly string[],
  listing: LinkListing,
): string {
  const rows = listing.entries.map(({ name, isCollection, size, changedMs }) => {
    const href = hrefOf("/l", [id, ...path, name], isCollection);
    const shown = isCollection ? `${escaped(name)}/` : escaped(name);
    const download = isCollection ? "" : " download";
    return `<tr><td><a href="${href}"${download}>${shown}</a></td><td class="n">${escaped(sizeText(size))}</td><td class="n when">${escaped(timeText(changedMs))}</td></tr>`;
  });
  const title = path.at(-1) ?? facts.name;
  const table =
    rows.length === 0
      ? '<p class="soft">Nothing is in this folder.</p>'
      : `<table><thead><tr><th scope="col">Name</th><th scope="col" class="n">Size</th><th scope="col" class="n when">Changed</th></tr></thead>
<tbody>
${rows.join("\n")}
</tbody></table>`;
  const more =
    listing.next === ""
      ? ""
      : `<p><a href="${hrefOf("/l", [id, ...path], true)}?after=${encodeURIComponent(listing.next)}">More</a></p>`;
  return page(
    title,
    `${wayOf(id, facts, path)}<h1>${escaped(title)}</h1>\n${table}\n${more}\n${endText(facts)}`,
  );
}

/** The page on which files are dropped. */
export function dropPage(facts: LinkFacts): string {
  return page(
    `Send files to ${facts.name}`,
    `<h1>Send files to ${escaped(facts.name)}</h1>
<p>Who gave you this link gets them. Nobody else who has the link sees what you send, nor do you.</p>
<form>
<label for="files">Files</label>
<input id="files" type="file" multiple required>
<div><button type="submit">Send</button></div>
</form>
<noscript><p class="bad">Sending needs JavaScript, which your browser has turned off.</p></noscript>
<p role="status"></p>
<ul aria-label="Files that you sent"></ul>
${endText(facts)}
<script>${SCRIPT}</script>`,
  );
}

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escaped(title)} – Grove</title>
<style>${STYLE}</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`;
}

/** The folders above, each a link. */
function wayOf(id: string, { name }: LinkFacts, path: readonly string[]): string {
  if (path.length === 0) return "";
  const above = [name, ...path.slice(0, -1)].map((folder, depth) => {
    const href = hrefOf("/l", [id, ...path.slice(0, depth)], true);
    return `<a href="${href}">${escaped(folder)}</a>`;
  });
  return `<nav aria-label="Folders above">${above.join(" / ")}</nav>\n`;
}

function endText({ endsMs }: LinkFacts): string {
  return endsMs === 0 ? "" : `<p class="soft">This link ends ${escaped(timeText(endsMs))}.</p>`;
}

function timeText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

function sizeText(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const step = bytes < 1_024 ? 0 : Math.min(4, Math.floor(Math.log2(bytes) / 10));
  const amount = bytes / 1_024 ** step;
  return `${amount >= 10 || step === 0 ? Math.round(amount) : amount.toFixed(1)} ${units[step]}`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"'\p{Cc}\u{202A}-\u{202E}\u{2066}-\u{2069}]/gu, (letter) =>
    /[&<>"']/u.test(letter) ? `&#${letter.charCodeAt(0)};` : "\u{FFFD}",
  );
}
