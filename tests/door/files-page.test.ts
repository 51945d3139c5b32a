// The page for files in Chromium against a whole cluster: uploads that survive kills, hostile files, a full space.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { PAGE_CHROMIUM } from "#testing/chromium.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { type DoorSite, makeEmptyFiles, openDoorSite } from "./door-site.ts";
import * as files from "./files-browser.ts";
import { choose, headersOf, LONG, looksWell, picture } from "./files-browser.ts";

/** Three pages of a listing. */
const ENTRIES = 2_500;

const ends: (() => Promise<void>)[] = [];
let site: DoorSite;
let browser: Browser;
before(async () => {
  if (PAGE_CHROMIUM === undefined) return;
  site = await openDoorSite({ after: (hook) => ends.push(hook) });
  browser = await files.startBrowser();
});
after(async () => {
  await browser?.close();
  for (const end of ends.toReversed()) await end();
});

const signedIn = (t: TestContext, email?: string): Promise<Page> =>
  files.signedIn(t, browser, site.door, email);

async function sha256Of(path: string): Promise<string> {
  const answer = await site.dav(path);
  assert.equal(answer.status, 200, path);
  return createHash("sha256")
    .update(Buffer.from(await answer.arrayBuffer()))
    .digest("hex");
}

test(
  "a folder of many files and a large one arrive whole although the door is killed on the way",
  LONG,
  async (t) => {
    const page = await signedIn(t);
    const folder = join(scratchFolder("drop-"), "many");
    const sums = new Map<string, string>();
    for (const part of ["a", "a/b", "c d"]) mkdirSync(join(folder, part), { recursive: true });
    const write = (path: string, bytes: Buffer): void => {
      writeFileSync(join(folder, path), bytes);
      sums.set(path, createHash("sha256").update(bytes).digest("hex"));
    };
    for (let at = 0; at < 300; at++)
      write(`${["a", "a/b", "c d"][at % 3]}/f${at}.bin`, randomBytes(500 + at));
    write("large.bin", randomBytes(30_000_000));
    await choose(page, folder, "folder");
    await page.getByText(/Uploading: [1-9]/u).waitFor();
    const killed = await site.pid("door");
    process.kill(killed, "SIGKILL");
    await until(async () => (await site.pid("door").catch(() => killed)) !== killed, "another door");
    await page.getByText("301 files uploaded").waitFor({ timeout: 180_000 });
    for (const path of ["large.bin", "a/f0.bin", "a/b/f1.bin", "c d/f299.bin"])
      assert.equal(await sha256Of(`many/${encodeURI(path)}`), sums.get(path), path);
    let found = 0;
    for (const part of ["a", "a/b", "c%20d"]) {
      const answer = await site.dav(`many/${part}/`, { method: "PROPFIND", headers: { depth: "1" } });
      found += (await answer.text()).match(/getcontentlength>/gu)?.length ?? 0;
    }
    assert.ok(found >= 600, `${found / 2} files`);
    await picture(page, "uploaded");
  },
);

test("hostile files and names do nothing in the page, and are never a page of the door", LONG, async (t) => {
  const script = "top.pwned=1;parent.pwned=1;alert(1)";
  const hostile: Readonly<Record<string, string>> = {
    "evil.svg": `<svg xmlns="http://www.w3.org/2000/svg" onload="${script}"><script>${script}</script></svg>`,
    "evil.html": `<!doctype html><script>${script}</script>`,
    "evil.txt": `<script>${script}</script>`,
    "<img src=x onerror=alert(1)>.txt": "x",
    "..\\..\\x": "x",
  };
  for (const [name, text] of Object.entries(hostile))
    assert.equal((await site.dav(encodeURIComponent(name), { method: "PUT", body: text })).status, 201);
  const page = await signedIn(t);
  page.on("dialog", () => assert.fail("a file has opened a dialog"));
  for (const name of Object.keys(hostile)) {
    await page.getByRole("button", { name, exact: true }).click();
    await page.getByRole("dialog").waitFor();
    if (name === "evil.txt") {
      const text = page.getByLabel("Text of the file");
      await until(async () => (await text.inputValue()) === `<script>${script}</script>`, "the text");
    }
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  }
  await picture(page, "hostile-names");
  assert.equal(await page.evaluate("window.pwned"), undefined);
  const { cookie } = await headersOf(page);
  for (const name of Object.keys(hostile)) {
    const address = `${site.door}/api/content?view=1&path=${encodeURIComponent(`/${name}`)}`;
    const answer = await fetch(address, { headers: { cookie } });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
    assert.match(answer.headers.get("content-security-policy") ?? "", /^sandbox; default-src 'none'/u);
    assert.equal(answer.headers.get("cross-origin-resource-policy"), "same-origin");
    const isText = name.endsWith(".txt");
    assert.match(answer.headers.get("content-disposition") ?? "", isText ? /^inline/u : /^attachment/u);
    assert.doesNotMatch(answer.headers.get("content-type") ?? "", /html|xhtml/u);
    await answer.body?.cancel();
  }
  const archive = await fetch(`${site.door}/api/zip?path=/`, { headers: { cookie } });
  const bytes = Buffer.from(await archive.arrayBuffer());
  assert.equal(String(bytes.length), archive.headers.get("content-length"));
  assert.ok(bytes.includes(".._.._x") && bytes.includes("_img src=x onerror=alert(1)_.txt"));
  assert.ok(!bytes.includes("..\\..\\x"));
  // Another site's page gets nothing by the cookie, and changes nothing.
  const foreign = { cookie, "sec-fetch-site": "cross-site", origin: "https://evil.example" };
  assert.equal((await fetch(`${site.door}/api/list?path=/`, { headers: foreign })).status, 403);
  const body = JSON.stringify({ root: "", path: "/evil.txt" });
  const headers = { cookie, origin: "https://evil.example", "content-type": "application/json" };
  assert.equal((await fetch(`${site.door}/api/trash`, { method: "POST", headers, body })).status, 403);
  // WebDAV takes no cookie, and its password is no session.
  assert.equal((await fetch(`${site.door}/dav/`, { headers: { cookie } })).status, 401);
  const { authorization } = site;
  assert.equal((await fetch(`${site.door}/api/me`, { headers: { authorization } })).status, 401);
});

test(
  "a space that fills in the middle of an upload says so, and goes on once there is room",
  LONG,
  async (t) => {
    const bob = "bob@example.com";
    const page = await signedIn(t, bob);
    const folder = scratchFolder("full-");
    const parts = Array.from({ length: 6 }, (_, at) => join(folder, `part${at}.bin`));
    for (const path of parts) writeFileSync(path, randomBytes(1_000_000));
    // The console learns of a new root by its next look.
    await until(
      () =>
        site.setQuota(3_500_000, bob).then(
          () => true,
          () => false,
        ),
      "the root in the console",
    );
    await choose(page, parts, "files");
    await page.getByText(/Your space is full, so the upload has stopped/u).waitFor();
    await page
      .getByText(/^. Your space is (?:nearly )?full/u)
      .first()
      .waitFor();
    await looksWell(page, "full");
    await site.setQuota(100_000_000, bob);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("6 files uploaded").waitFor();
  },
);

test("names that are taken are asked about, and what is deleted comes back", LONG, async (t) => {
  const page = await signedIn(t, "carol@example.com");
  const folder = scratchFolder("taken-");
  const path = join(folder, "report.txt");
  writeFileSync(path, "one");
  await choose(page, [path], "files");
  await page.getByText("1 file uploaded").waitFor();
  writeFileSync(path, "two");
  await choose(page, [path], "files");
  await page.getByRole("heading", { name: "This name is taken" }).waitFor();
  await looksWell(page, "taken");
  await page.getByRole("button", { name: "Keep both" }).click();
  await page.getByRole("button", { name: "report (2).txt", exact: true }).waitFor();
  await page.getByRole("button", { name: "Close" }).click();
  // From here on the keyboard alone.
  const grid = page.getByRole("grid");
  await grid.focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Delete");
  await page.getByText("Moved report (2).txt to the trash.").waitFor();
  await page.getByRole("button", { name: "Undo" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "report (2).txt", exact: true }).waitFor();
  await grid.focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("F2");
  await page.getByRole("heading", { name: "Rename" }).waitFor();
  await looksWell(page, "rename");
  await page.keyboard.type("renamed");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "renamed.txt", exact: true }).waitFor();
  await grid.focus();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Home");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByLabel("Text of the file").waitFor();
  await looksWell(page, "preview");
  await page.keyboard.press("Escape");
  await grid.focus();
  await page.keyboard.press("Delete");
  await page.getByText(/^Moved .* to the trash/u).waitFor();
  await page.getByRole("link", { name: "Trash" }).click();
  await page
    .getByRole("button", { name: /^Restore/u })
    .first()
    .waitFor();
  await looksWell(page, "trash");
  await page
    .getByRole("button", { name: /^Restore/u })
    .first()
    .click();
  await page.getByText("The trash is empty.").waitFor();
  await page.getByRole("link", { name: "Shared with me" }).click();
  await page.getByText(/Nobody shares anything with you yet/u).waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("Sign in to see, upload and share your files.").waitFor();
  await looksWell(page, "signed-out");
  await page.goto(`${site.door}/?path=%2F`);
  await page.getByRole("link", { name: "Sign in" }).waitFor();
});

test("thousands of entries are shown by a few rows, and the last is two keys away", LONG, async (t) => {
  const page = await signedIn(t, "dave@example.com");
  const names = Array.from({ length: ENTRIES }, (_, number) => `n${String(number).padStart(5, "0")}`);
  await makeEmptyFiles(site, "dave@example.com", names);
  await page.reload();
  await page.getByText(`${ENTRIES.toLocaleString("en")} items`, { exact: true }).waitFor();
  const rows = page.getByRole("row");
  assert.ok((await rows.count()) < 100, `${await rows.count()} rows`);
  await page.getByRole("grid").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("End");
  await page.getByRole("button", { name: `n${String(ENTRIES - 1).padStart(5, "0")}`, exact: true }).waitFor();
  await page.getByRole("button", { name: "Tiles" }).click();
  await page.getByRole("button", { name: "List" }).waitFor();
  assert.ok((await rows.count()) < 200, `${await rows.count()} tiles`);
  await looksWell(page, "tiles");
});
