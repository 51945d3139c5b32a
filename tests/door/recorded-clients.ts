// Requests as Finder and Windows' Explorer send them by public logs, replayed: no Mac and no Windows ran here.
//
// This says that each request of a copy, a save and a delete is answered as its program needs it, within five
// seconds. It says nothing of what the programs themselves make of the answers.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { DoorSite } from "./door-site.ts";
import { oneDoor } from "./one-door.ts";

const PATIENCE_MS = 5_000;

let site: DoorSite;
before(async () => {
  site = await oneDoor("recorded@example.com");
});

interface Recorded {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Sends the body in chunks of unknown number. */
  readonly isChunked?: boolean;
}

interface Answered {
  readonly text: string;
  readonly headers: Headers;
}

/** A program: sends one recorded request and expects a status. */
function programOf(always: Readonly<Record<string, string>>) {
  return async (
    status: number,
    line: string,
    { headers, body, isChunked }: Recorded = {},
  ): Promise<Answered> => {
    const [method = "", path = ""] = line.split(" ");
    const answer = await fetch(`${site.door}${path}`, {
      method,
      headers: { authorization: site.authorization, ...always, ...headers },
      signal: AbortSignal.timeout(PATIENCE_MS),
      ...(body !== undefined && (isChunked === true ? { body: chunksOf(body), duplex: "half" } : { body })),
    });
    const text = await answer.text();
    assert.equal(answer.status, status, `${line}: ${text}`);
    return { text, headers: answer.headers };
  };
}

function chunksOf(text: string): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const part of [text.slice(0, 3), text.slice(3)]) controller.enqueue(Buffer.from(part));
      controller.close();
    },
  });
}

const XML = { "content-type": 'text/xml; charset="utf-8"' };
const properties = (...names: readonly string[]): string =>
  `<?xml version="1.0" encoding="utf-8"?>\n<D:propfind xmlns:D="DAV:">\n<D:prop>\n${names
    .map((name) => `<D:${name}/>\n`)
    .join("")}</D:prop>\n</D:propfind>`;
const lockOf = (owner: string): string =>
  `<?xml version="1.0" encoding="utf-8"?><D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype><D:owner><D:href>${owner}</D:href></D:owner></D:lockinfo>`;
const tokenOf = ({ headers }: Answered): string =>
  /^<(urn:uuid:[^>]+)>$/u.exec(headers.get("lock-token") ?? "")?.[1] ?? assert.fail("no Lock-Token");

test("what Finder sends for a mount, a copied file with its ._ twin, a save and a delete", async () => {
  const finder = programOf({
    "user-agent": "WebDAVFS/3.0.0 (03008000) Darwin/24.4.0 (arm64)",
    accept: "*/*",
  });
  const one = { ...XML, depth: "0" };
  const { headers } = await finder(200, "OPTIONS /dav/");
  assert.match(headers.get("dav") ?? "", /\b2\b/u);
  await finder(207, "PROPFIND /dav/", {
    headers: one,
    body: properties("getlastmodified", "getcontentlength", "creationdate", "resourcetype"),
  });
  const quota = properties("quota-available-bytes", "quota-used-bytes", "quota", "quotaused");
  const told = await finder(207, "PROPFIND /dav/", { headers: one, body: quota });
  assert.match(told.text, /<D:quota-available-bytes>\d+<[^]*404 Not Found/u);
  const look = {
    headers: one,
    body: properties("getlastmodified", "getcontentlength", "creationdate", "resourcetype"),
  };
  for (const hidden of ["._.", ".metadata_never_index", ".Spotlight-V100", ".hidden", ".DS_Store"])
    await finder(404, `PROPFIND /dav/${hidden}`, look);

  for (const name of ["letter.txt", "._letter.txt"]) {
    await finder(404, `PROPFIND /dav/${name}`, look);
    await finder(201, `PUT /dav/${name}`, { body: "" });
    await finder(207, `PROPFIND /dav/${name}`, look);
    const lock = {
      headers: { ...XML, depth: "0", timeout: "Second-600" },
      body: lockOf("http://www.apple.com/webdav_fs/"),
    };
    const token = tokenOf(await finder(200, `LOCK /dav/${name}`, lock));
    await finder(207, `PROPFIND /dav/${name}`, look);
    await finder(423, `PUT /dav/${name}`, { body: "by somebody without the token" });
    const held = { if: `(<${token}>)` };
    await finder(204, `PUT /dav/${name}`, {
      headers: { ...held, "x-expected-entity-length": "9" },
      body: "Dear Bob,",
      isChunked: true,
    });
    // It refreshes a lock without a body.
    await finder(200, `LOCK /dav/${name}`, { headers: { ...held, timeout: "Second-600" } });
    await finder(207, `PROPFIND /dav/${name}`, look);
    await finder(204, `UNLOCK /dav/${name}`, { headers: { "lock-token": `<${token}>` } });
  }
  assert.equal((await finder(200, "GET /dav/letter.txt")).text, "Dear Bob,");
  await finder(206, "GET /dav/letter.txt", { headers: { range: "bytes=0-3" } });
  const list = await finder(207, "PROPFIND /dav/", {
    headers: { ...XML, depth: "1" },
    body: properties("getlastmodified", "getcontentlength", "creationdate", "resourcetype"),
  });
  assert.match(
    list.text,
    /\/dav\/letter\.txt<[^]*\/dav\/\._letter\.txt<|\/dav\/\._letter\.txt<[^]*\/dav\/letter\.txt</u,
  );
  await finder(201, "MKCOL /dav/untitled%20folder");
  await finder(201, "MOVE /dav/untitled%20folder", {
    headers: { destination: `${site.door}/dav/Orchard`, overwrite: "F" },
  });
  await finder(201, "MOVE /dav/letter.txt", {
    headers: { destination: `${site.door}/dav/Orchard/letter.txt`, overwrite: "T" },
  });
  await finder(204, "DELETE /dav/._letter.txt");
  await finder(204, "DELETE /dav/Orchard");
});

test("what Windows' Explorer sends for a drive, a copied file with its times, a new folder and a delete", async () => {
  const explorer = programOf({
    "user-agent": "Microsoft-WebDAV-MiniRedir/10.0.22000",
    translate: "f",
    "cache-control": "no-cache",
    pragma: "no-cache",
  });
  const times = (...set: readonly string[]): Recorded => ({
    headers: XML,
    body: `<?xml version="1.0" encoding="utf-8" ?><D:propertyupdate xmlns:D="DAV:" xmlns:Z="urn:schemas-microsoft-com:"><D:set><D:prop>${set
      .map((name) => `<Z:${name}>Tue, 24 Nov 2026 10:00:00 GMT</Z:${name}>`)
      .join("")}<Z:Win32FileAttributes>00000020</Z:Win32FileAttributes></D:prop></D:set></D:propertyupdate>`,
  });
  const nothing = { headers: { "content-length": "0", depth: "0" } };
  await explorer(200, "OPTIONS /");
  const { headers } = await explorer(200, "OPTIONS /dav/");
  assert.equal(headers.get("ms-author-via"), "DAV");
  await explorer(207, "PROPFIND /dav", nothing);
  await explorer(207, "PROPFIND /dav/", { headers: { ...nothing.headers, depth: "1" } });
  for (const name of ["desktop.ini", "folder.jpg", "Thumbs.db", "Report%202026.docx"])
    await explorer(404, `PROPFIND /dav/${name}`, nothing);

  const path = "/dav/Report%202026.docx";
  await explorer(201, `PUT ${path}`, { body: "" });
  // No Depth, as it sends it.
  const lock = { headers: { ...XML, timeout: "Second-3600" }, body: lockOf("OFFICE\\alice") };
  const token = tokenOf(await explorer(200, `LOCK ${path}`, lock));
  const held = { if: `(<${token}>)` };
  const patch = times("Win32CreationTime", "Win32LastAccessTime", "Win32LastModifiedTime");
  const patched = await explorer(207, `PROPPATCH ${path}`, { ...patch, headers: { ...XML, ...held } });
  assert.match(patched.text, /200 OK/u);
  assert.doesNotMatch(patched.text, /403|409/u);
  await explorer(200, `HEAD ${path}`);
  await explorer(204, `PUT ${path}`, { headers: held, body: "PK of a document" });
  await explorer(207, `PROPPATCH ${path}`, {
    ...times("Win32LastModifiedTime"),
    headers: { ...XML, ...held },
  });
  await explorer(204, `UNLOCK ${path}`, { headers: { "lock-token": `<${token}>` } });
  assert.equal((await explorer(200, `GET ${path}`)).text, "PK of a document");
  const told = await explorer(207, `PROPFIND ${path}`, nothing);
  assert.match(told.text, /Win32LastModifiedTime[^]*Tue, 24 Nov 2026 10:00:00 GMT/u);

  await explorer(404, "PROPFIND /dav/New%20folder", nothing);
  await explorer(201, "MKCOL /dav/New%20folder");
  await explorer(207, "PROPPATCH /dav/New%20folder", times("Win32CreationTime"));
  await explorer(201, "MOVE /dav/New%20folder", {
    headers: { destination: `${site.door}/dav/Accounts`, overwrite: "F" },
  });
  await explorer(412, `MOVE ${path}`, {
    headers: { destination: `${site.door}/dav/Accounts`, overwrite: "F" },
  });
  await explorer(204, `DELETE ${path}`);
  await explorer(204, "DELETE /dav/Accounts");
});
