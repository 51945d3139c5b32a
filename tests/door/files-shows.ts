// What people see of large work: a drop of many files over kills, a large archive, a long folder that scrolls.
//
// GROVE_DROP_FILES=2000, GROVE_DROP_BYTES=1000000000, GROVE_ZIP_BYTES=1000000000 and GROVE_LISTING_ENTRIES=10000 make it as large as promised.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { createWriteStream, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { before, type TestContext, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { PAGE_CHROMIUM } from "#testing/chromium.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { startCountingProxy } from "./counting-proxy.ts";
import { type DoorSite, makeEmptyFiles } from "./door-site.ts";
import { headersOf, LONG, looksWell, picture, signedIn, startBrowser } from "./files-browser.ts";
import { oneBrowser, oneDoor } from "./one-door.ts";

const DROP_FILES = Number(process.env["GROVE_DROP_FILES"] ?? 400);
const ZIP_BYTES = Number(process.env["GROVE_ZIP_BYTES"] ?? 40_000_000);
const LISTING_ENTRIES = Number(process.env["GROVE_LISTING_ENTRIES"] ?? 2_500);
const LARGE_BYTES = Number(process.env["GROVE_DROP_BYTES"] ?? 200_000_000);
const PARTS = ["a", "a/b", "c d"];
const SLOW = { ...LONG, timeout: 1_200_000 };

const WHO = "shows@example.com";

let site: DoorSite;
let browser: Browser;
before(async () => {
  if (PAGE_CHROMIUM === undefined) return;
  [site, browser] = [await oneDoor(WHO), await oneBrowser()];
});

/** A browser whose connections to the door go through a port of ours. */
async function browserBy(t: TestContext, port: number): Promise<Browser> {
  const { host } = new URL(site.door);
  const own = await startBrowser([`--host-resolver-rules=MAP ${host} 127.0.0.1:${port}`]);
  t.after(() => own.close());
  return own;
}

/** Drops a folder on the page, as a file manager does. */
async function drop(page: Page, folder: string): Promise<void> {
  const cdp = await page.context().newCDPSession(page);
  const at = { x: 700, y: 500, data: { items: [], files: [folder], dragOperationsMask: 1 } };
  // A page that has not drawn its list yet takes no drop.
  await page.waitForLoadState("networkidle");
  for (const type of ["dragEnter", "dragOver", "drop"] as const) {
    await cdp.send("Input.dispatchDragEvent", { type, ...at });
    await page.evaluate("new Promise(requestAnimationFrame)");
  }
}

/** Checksums of a drop, by path: many small files, a large one, and an empty folder. */
function makeDrop(folder: string): { readonly sums: Map<string, string>; readonly bytes: number } {
  const sums = new Map<string, string>();
  let bytes = 0;
  for (const part of [...PARTS, "empty"]) mkdirSync(join(folder, part), { recursive: true });
  const write = (path: string, content: Buffer): void => {
    writeFileSync(join(folder, path), content);
    sums.set(path, createHash("sha256").update(content).digest("hex"));
    bytes += content.length;
  };
  for (let at = 0; at < DROP_FILES; at++) write(`${PARTS[at % 3]}/f${at}.bin`, randomBytes(20_000 + at));
  write("large.bin", randomBytes(LARGE_BYTES));
  return { sums, bytes };
}

async function kill(name: string): Promise<void> {
  const killed = await site.pid(name);
  process.kill(killed, "SIGKILL");
  await until(async () => (await site.pid(name).catch(() => killed)) !== killed, `another ${name}`);
}

test(
  "a dropped folder arrives whole over two kills each of door and FileServer; less than a tenth goes twice",
  SLOW,
  async (t) => {
    const proxy = await startCountingProxy(Number(new URL(site.door).port));
    t.after(() => proxy.close());
    const page = await signedIn(t, await browserBy(t, proxy.port), site.door, WHO);
    const folder = join(scratchFolder("drop-"), "harvest");
    const { sums, bytes } = makeDrop(folder);
    const before = proxy.sentBytes();
    await drop(page, folder);
    await page.getByText(/Uploading: [1-9]/u).waitFor();
    const passed = (part: number): Promise<true> =>
      until(() => proxy.sentBytes() - before > part * bytes || undefined, `${100 * part} % of the drop`);
    for (const [part, name] of [
      [0.15, "door"],
      [0.35, site.node.id],
      [0.55, "door"],
      [0.75, site.node.id],
    ] as const) {
      await passed(part);
      await kill(name);
      if (part === 0.35) await picture(page, "uploading");
    }
    await page
      .getByText(`${(DROP_FILES + 1).toLocaleString("en")} files uploaded`)
      .waitFor({ timeout: 900_000 });
    const sent = proxy.sentBytes() - before;
    t.diagnostic(`${bytes} bytes of files, ${sent} sent: ${(100 * (sent / bytes - 1)).toFixed(1)} % more`);
    assert.ok(sent >= bytes && sent < 1.1 * bytes, `${sent} of ${bytes} bytes`);
    const archive = join(scratchFolder("archive-"), "harvest.zip");
    await downloadZip(page, "/harvest", archive);
    const place = scratchFolder("unpacked-");
    execFileSync("unzip", ["-q", archive, "-d", place]);
    for (const [path, sum] of sums) {
      const found = createHash("sha256")
        .update(readFileSync(join(place, path)))
        .digest("hex");
      assert.equal(found, sum, path);
    }
    assert.ok(statSync(join(place, "empty")).isDirectory());
  },
);

test("what has come of a part or of a cut body is kept in whole chunks, and told", LONG, async (t) => {
  const page = await signedIn(t, browser, site.door, "cut@example.com");
  const headers = { ...(await headersOf(page)), "tus-resumable": "1.0.0" };
  const begun = await fetch(`${site.door}/api/uploads?path=/cut.bin&changed=0&exists=fail`, {
    method: "POST",
    headers: { ...headers, "upload-length": "30000000" },
  });
  assert.equal(begun.status, 201, await begun.text());
  const address = new URL(begun.headers.get("location") ?? "", site.door);
  const ask = async (method: string, more: Record<string, string>, body?: Buffer): Promise<string | null> => {
    const init = { method, headers: { ...headers, ...more }, ...(body && { body: new Uint8Array(body) }) };
    const answer = await fetch(address, init);
    assert.ok(answer.ok, `${method} ${answer.status}`);
    return answer.headers.get("upload-offset");
  };
  const part = (offset: number): Record<string, string> => ({
    "content-type": "application/offset+octet-stream",
    "upload-offset": String(offset),
  });
  assert.equal(await ask("PATCH", part(0), randomBytes(9_000_000)), "8000000");
  // A connection that breaks after nine of the twenty-two million bytes that it announced.
  const cut = request(address, {
    method: "PATCH",
    headers: { ...headers, ...part(8_000_000), "content-length": 22_000_000 },
  });
  cut.on("error", () => undefined);
  await new Promise((resolve) => cut.write(randomBytes(9_000_000), resolve));
  cut.destroy();
  await until(async () => (await ask("HEAD", {})) === "16000000", "what was sent before the cut");
  assert.equal(await ask("PATCH", part(16_000_000), randomBytes(14_000_000)), "30000000");
});

async function downloadZip(page: Page, path: string, to: string): Promise<number> {
  const address = `${site.door}/api/zip?path=${encodeURIComponent(path)}`;
  const answer = await fetch(address, { headers: await headersOf(page) });
  assert.equal(answer.status, 200);
  const { body } = answer;
  assert.ok(body !== null);
  await pipeline(Readable.fromWeb(body), createWriteStream(to));
  const length = Number(answer.headers.get("content-length"));
  assert.equal(statSync(to).size, length, "the length that was told before the first byte");
  return length;
}

function residentBytes(pid: number): number {
  const kib = /VmRSS:\s+(\d+) kB/u.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kib) * 1_024;
}

test(
  "a zip of folders is streamed with its length told before, and `unzip -t` finds nothing wrong",
  SLOW,
  async (t) => {
    const page = await signedIn(t, browser, site.door, "zip@example.com");
    const headers = await headersOf(page);
    for (const path of ["/big", "/big/in", "/big/in/deeper", "/big/empty"]) {
      const body = JSON.stringify({ root: "", path });
      const more = { ...headers, "content-type": "application/json" };
      assert.equal(
        (await fetch(`${site.door}/api/folder`, { method: "POST", headers: more, body })).status,
        200,
      );
    }
    const size = 8_000_000;
    const count = Math.ceil(ZIP_BYTES / size);
    for (let at = 0; at < count; at++) {
      const path = ["/big", "/big/in", "/big/in/deeper"][at % 3];
      const address = `${site.door}/api/content?path=${encodeURIComponent(`${path}/é ${at}.bin`)}`;
      const answer = await fetch(address, {
        method: "PUT",
        headers,
        body: new Uint8Array(randomBytes(size)),
      });
      assert.equal(answer.status, 200, await answer.text());
    }
    const archive = join(scratchFolder("zip-"), "big.zip");
    const pid = await site.pid("door");
    const atFirst = residentBytes(pid);
    const length = await downloadZip(page, "/big", archive);
    t.diagnostic(`${length} bytes; the door has ${residentBytes(pid) - atFirst} more in memory than before`);
    assert.match(execFileSync("unzip", ["-t", archive], { encoding: "utf8" }), /No errors detected/u);
    const names = execFileSync("unzip", ["-Z1", archive], { encoding: "utf8" }).trim().split("\n");
    assert.equal(names.length, count + 3);
  },
);

/** Scrolls as a wheel does; resolves with the most rows, the emptiest frame and where it ended. */
const SCROLL = `(async () => {
  const list = document.querySelector(".entries");
  const seen = { rows: 0, fewest: Infinity, steps: 0, longestMs: 0, end: "reached" };
  const frame = () => new Promise((resolve) => {
    const late = setTimeout(() => { seen.end = "no frame"; resolve(); }, 20_000);
    requestAnimationFrame(() => { clearTimeout(late); resolve(); });
  });
  let lastMs = performance.now();
  while (list.scrollTop + list.clientHeight < list.scrollHeight - 1) {
    if (++seen.steps * 400 > list.scrollHeight) seen.end = "list at " + list.scrollTop;
    list.scrollTop += 800;
    await frame();
    await frame();
    if (seen.end !== "reached") break;
    const box = list.getBoundingClientRect();
    const rows = [...list.querySelectorAll(".entry")];
    const inView = rows.filter((row) => {
      const { top, bottom } = row.getBoundingClientRect();
      return bottom > box.top && top < box.bottom;
    });
    seen.rows = Math.max(seen.rows, rows.length);
    seen.fewest = Math.min(seen.fewest, inView.length);
    seen.longestMs = Math.max(seen.longestMs, performance.now() - lastMs);
    lastMs = performance.now();
  }
  return seen;
})()`;

/** What is seen in the page of a long folder. */
async function scrolled(
  page: Page,
): Promise<{ rows: number; fewest: number; steps: number; longestMs: number; end: string }> {
  await page.getByText(`${LISTING_ENTRIES.toLocaleString("en")} items`, { exact: true }).waitFor();
  return page.evaluate(SCROLL);
}

test(
  "thousands of entries scroll by a few rows, no frame is empty, and the last is two keys away",
  LONG,
  async (t) => {
    const who = "long@example.com";
    const names = Array.from({ length: LISTING_ENTRIES }, (_, at) => `n${String(at).padStart(5, "0")}`);
    await makeEmptyFiles(site, who, names);
    let page = await signedIn(t, browser, site.door, who);
    let seen = await scrolled(page);
    // Once in ten thousand frames the browser stops to draw a page on a loaded machine, whatever happens there.
    for (let again = 0; again < 2 && seen.end === "no frame"; again++) {
      page = await signedIn(t, browser, site.door, who);
      seen = await scrolled(page);
    }
    t.diagnostic(
      `${seen.steps} steps, the longest ${seen.longestMs.toFixed(0)} ms, ${seen.rows} rows at most`,
    );
    assert.equal(seen.end, "reached");
    assert.ok(seen.rows < 60, `${seen.rows} rows`);
    assert.ok(seen.fewest >= 1, "a frame was empty");
    assert.ok(seen.steps > LISTING_ENTRIES / 30);
    await page.reload();
    await page.getByText(`${LISTING_ENTRIES.toLocaleString("en")} items`, { exact: true }).waitFor();
    await page.getByRole("grid").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("End");
    await page.getByRole("button", { name: names.at(-1) ?? "", exact: true }).waitFor();
    await page.getByRole("button", { name: "Tiles" }).click();
    await page.getByRole("button", { name: "List" }).waitFor();
    const tiles = await page.getByRole("row").count();
    assert.ok(tiles < 200, `${tiles} tiles`);
    await looksWell(page, "tiles");
  },
);
