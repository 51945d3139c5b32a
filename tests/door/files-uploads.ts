// Uploads of the page for files that do not go straight: refused at their end, given up, into names that are taken.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { before, type TestContext, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { PAGE_CHROMIUM } from "#testing/chromium.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import type { DoorSite } from "./door-site.ts";
import * as files from "./files-browser.ts";
import { choose, headersOf, LONG, looksWell } from "./files-browser.ts";
import { oneBrowser, oneDoor } from "./one-door.ts";

const SIZE = 8_000_000;

const WHO = "uploads@example.com";

let site: DoorSite;
let browser: Browser;
before(async () => {
  if (PAGE_CHROMIUM === undefined) return;
  [site, browser] = [await oneDoor(WHO), await oneBrowser()];
});

const signedIn = (t: TestContext): Promise<Page> => files.signedIn(t, browser, site.door, WHO);

/** A file of this machine with the key under which the page keeps the address of its upload. */
function makeFile(
  name: string,
  folder = "/",
): { path: string; bytes: Buffer; changedMs: number; key: string } {
  const path = join(scratchFolder("upload-"), name);
  const bytes = randomBytes(SIZE);
  writeFileSync(path, bytes);
  const changedMs = Math.floor(statSync(path).mtimeMs);
  return { path, bytes, changedMs, key: `grove-upload  ${folder}${name} ${SIZE} ${changedMs}` };
}

/** Headers of a person's requests about uploads. */
async function tusOf(page: Page): Promise<Record<string, string>> {
  return { ...(await headersOf(page)), "tus-resumable": "1.0.0" };
}

async function beginUpload(page: Page, path: string, changedMs: number): Promise<string> {
  const address = `${site.door}/api/uploads?path=${encodeURIComponent(path)}&changed=${changedMs}&exists=fail`;
  const headers = { ...(await tusOf(page)), "upload-length": String(SIZE) };
  const begun = await fetch(address, { method: "POST", headers });
  assert.equal(begun.status, 201, await begun.text());
  return begun.headers.get("location") ?? "";
}

/** Keeps an upload as a page that was closed has left it. */
async function leaveBehind(page: Page, key: string, address: string): Promise<void> {
  await page.evaluate(`localStorage.setItem(${JSON.stringify(key)}, ${JSON.stringify(address)})`);
}

test(
  "an upload refused when all its bytes were there is a file once the page has sent it again",
  LONG,
  async (t) => {
    const page = await signedIn(t);
    const { path, bytes, changedMs, key } = makeFile("staged.bin", "/locked/");
    assert.equal((await site.dav("locked", { method: "MKCOL" })).status, 201);
    const location = await beginUpload(page, "/locked/staged.bin", changedMs);
    const address = `${site.door}${location}`;
    const headers = await tusOf(page);
    const offsetOf = async (): Promise<string | null> =>
      (await fetch(address, { method: "HEAD", headers })).headers.get("upload-offset");
    // The folder is locked while the bytes are on their way, so that only the end is refused.
    const sent = request(address, {
      method: "PATCH",
      headers: {
        ...headers,
        "content-type": "application/offset+octet-stream",
        "upload-offset": "0",
        "content-length": SIZE,
      },
    });
    const status = new Promise((resolve, reject) => {
      sent.on("response", (answer) => resolve(answer.resume().statusCode)).on("error", reject);
    });
    sent.write(bytes.subarray(0, SIZE - 1_000_000));
    await until(async () => (await offsetOf()) === "4000000", "a chunk on stable storage");
    const lock = await site.dav("locked/", {
      method: "LOCK",
      headers: { depth: "infinity", timeout: "Second-600" },
      body: '<lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope><locktype><write/></locktype></lockinfo>',
    });
    assert.equal(lock.status, 200, await lock.text());
    sent.end(bytes.subarray(SIZE - 1_000_000));
    assert.equal(await status, 423);
    assert.equal(await offsetOf(), String(SIZE));
    assert.equal((await site.dav("locked/staged.bin")).status, 404);

    await leaveBehind(page, key, location);
    await page.goto(`${site.door}/?path=%2Flocked`);
    await choose(page, [path], "files");
    await page.getByText("1 file did not arrive").waitFor();
    const token = { "lock-token": lock.headers.get("lock-token") ?? "" };
    assert.equal((await site.dav("locked/", { method: "UNLOCK", headers: token })).status, 204);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("1 file uploaded").waitFor();
    const found = await site.dav("locked/staged.bin");
    assert.equal(found.status, 200);
    assert.ok(bytes.equals(Buffer.from(await found.arrayBuffer())));
    assert.equal(await page.evaluate(`localStorage.getItem(${JSON.stringify(key)})`), null);
  },
);

test(
  "Cancel and Forget end an upload at the server, and nothing is said of a closed page",
  LONG,
  async (t) => {
    const page = await signedIn(t);
    const headers = await tusOf(page);
    const isOver = async (location: string): Promise<boolean> =>
      (await fetch(`${site.door}${location}`, { method: "HEAD", headers })).status === 410;
    const cancelled = makeFile("cancelled.bin");
    let location = "";
    await page.route("**/api/uploads/*", (route) => {
      if (route.request().method() !== "PATCH") return route.continue();
      // Never answered, so that it is on its way when all is given up.
      location = new URL(route.request().url()).pathname;
      return undefined;
    });
    await choose(page, [cancelled.path], "files");
    await until(() => location !== "", "the first part");
    assert.equal(await isOver(location), false);
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("region", { name: "Uploads" }).waitFor({ state: "detached" });
    await until(() => isOver(location), "the end of the cancelled upload");

    const left = makeFile("left.bin");
    const behind = await beginUpload(page, "/left.bin", left.changedMs);
    await leaveBehind(page, left.key, behind);
    await page.reload();
    await page.getByText("1 upload cut off").waitFor();
    await page.getByText(/^left\.bin did not arrive whole/u).waitFor();
    assert.equal(await isOver(behind), false);
    await page.getByRole("button", { name: "Forget" }).click();
    await page.getByRole("region", { name: "Uploads" }).waitFor({ state: "detached" });
    await until(() => isOver(behind), "the end of the forgotten upload");
  },
);

test(
  "a folder whose name a file has fails at once, and one that is deleted is made again",
  LONG,
  async (t) => {
    const page = await signedIn(t);
    const folder = join(scratchFolder("drop-"), "harvest");
    mkdirSync(join(folder, "pears"), { recursive: true });
    for (const path of ["one.txt", "pears/two.txt"]) writeFileSync(join(folder, path), path);
    assert.equal((await site.dav("harvest", { method: "PUT", body: "a file" })).status, 201);
    await choose(page, folder, "folder");
    await page.getByText("2 files did not arrive").waitFor();
    await page.getByText(/^one\.txt: .*a file lies on the way/u).waitFor();
    assert.equal((await site.dav("harvest", { method: "DELETE" })).status, 204);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("2 files uploaded").waitFor();
    const isThere = async (): Promise<boolean> => (await site.dav("harvest/pears/two.txt")).ok;
    assert.ok(await isThere());
    assert.equal((await site.dav("harvest", { method: "DELETE" })).status, 204);
    await choose(page, folder, "folder");
    await until(isThere, "the folder that was deleted meanwhile");
  },
);

/** Drops two files, of which the browser can read one. */
const DROP = `(() => {
  DataTransferItem.prototype.webkitGetAsEntry = function () {
    const file = this.getAsFile();
    return {
      name: file.name,
      isFile: true,
      file: (take, refuse) => (file.name === "shut.txt" ? refuse(new Error("NotReadableError")) : take(file)),
    };
  };
  const dataTransfer = new DataTransfer();
  for (const name of ["shut.txt", "open.txt"]) dataTransfer.items.add(new File(["x"], name));
  const drop = new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer });
  document.querySelector(".folder-page").dispatchEvent(drop);
})()`;

test(
  "a drop of which something cannot be read brings the rest, and names what is left out",
  LONG,
  async (t) => {
    const page = await signedIn(t);
    await page.evaluate(DROP);
    await page.getByText("This browser could not read shut.txt. All else is uploaded.").waitFor();
    await page.getByText("1 file uploaded").waitFor();
    assert.equal((await site.dav("open.txt")).status, 200);
    await looksWell(page, "unreadable-drop");
  },
);
