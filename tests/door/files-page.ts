// The page for files in Chromium against a whole cluster: hostile files, a full space, names that are taken.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, type TestContext, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { PAGE_CHROMIUM } from "#testing/chromium.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import type { DoorSite } from "./door-site.ts";
import * as files from "./files-browser.ts";
import { choose, headersOf, LONG, looksWell, picture } from "./files-browser.ts";
import { oneBrowser, oneDoor } from "./one-door.ts";

const WHO = "page@example.com";

let site: DoorSite;
let browser: Browser;
before(async () => {
  if (PAGE_CHROMIUM === undefined) return;
  [site, browser] = [await oneDoor(WHO), await oneBrowser()];
});

const signedIn = (t: TestContext, email = WHO): Promise<Page> => files.signedIn(t, browser, site.door, email);

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
    const who = "full@example.com";
    const page = await signedIn(t, who);
    const folder = scratchFolder("full-");
    const parts = Array.from({ length: 6 }, (_, at) => join(folder, `part${at}.bin`));
    for (const path of parts) writeFileSync(path, randomBytes(1_000_000));
    // The console learns of a new root by its next look.
    await until(
      () =>
        site.setQuota(3_500_000, who).then(
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
    await site.setQuota(100_000_000, who);
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
