// Every view of the page for files in Chromium: what it says and does, axe, no sideways scroll from 360 px up.
import assert from "node:assert/strict";
import { before, type TestContext, test } from "node:test";
import type { Browser, Page, Response } from "playwright-core";
import { PAGE_CHROMIUM } from "#testing/chromium.ts";
import { textsOfFiles } from "#testing/texts-of-files.ts";
import { until } from "#testing/until.ts";
import type { DoorSite } from "./door-site.ts";
import { headersOf, LONG, looksWell, signedIn as signedInAt } from "./files-browser.ts";
import { oneBrowser, oneDoor } from "./one-door.ts";
import { samplePdf, samplePicture, sampleVideo } from "./samples.ts";

let site: DoorSite;
let browser: Browser;
before(async () => {
  if (PAGE_CHROMIUM === undefined) return;
  [site, browser] = [await oneDoor("views@example.com"), await oneBrowser()];
});

const signedIn = (t: TestContext, email?: string): Promise<Page> => signedInAt(t, browser, site.door, email);

async function put(page: Page, path: string, body: Buffer | string): Promise<void> {
  const address = `${site.door}/api/content?path=${encodeURIComponent(path)}`;
  const answer = await fetch(address, {
    method: "PUT",
    headers: await headersOf(page),
    body: new Uint8Array(Buffer.from(body)),
  });
  assert.equal(answer.status, 200, await answer.text());
}

async function makeFolder(page: Page, path: string): Promise<void> {
  const headers = { ...(await headersOf(page)), "content-type": "application/json" };
  const body = JSON.stringify({ root: "", path });
  const answer = await fetch(`${site.door}/api/folder`, { method: "POST", headers, body });
  assert.equal(answer.status, 200, await answer.text());
}

const open = (page: Page, name: string): Promise<void> =>
  page.getByRole("button", { name, exact: true }).click();

async function close(page: Page): Promise<void> {
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
}

test("pictures, video, PDF and text are shown, by ranges where they are large", LONG, async (t) => {
  const page = await signedIn(t, "previews@example.com");
  await put(page, "/orchard.png", await samplePicture(page, 90));
  await put(page, "/river.png", await samplePicture(page, 200));
  await put(page, "/clip.webm", await sampleVideo(page));
  // Its table is at the end, behind much that nobody asks for.
  const pdf = samplePdf(3);
  const padded = Buffer.concat([pdf.subarray(0, -7), Buffer.alloc(1_500_000, 0x20)]);
  await put(page, "/report.pdf", Buffer.concat([pdf, Buffer.from(`%${"x".repeat(80)}\n`)]));
  await put(page, "/broken.pdf", padded.subarray(100, 5_000));
  await put(page, "/notes.md", "# Notes\n\n- prune the pears\n");
  await put(page, "/data.bin", Buffer.alloc(3_000));
  await page.reload();
  await page.getByText("7 items").waitFor();
  await looksWell(page, "list");
  await page.getByRole("button", { name: "Tiles" }).click();
  await until(
    () => page.evaluate<boolean>("[...document.images].filter((i) => i.naturalWidth > 0).length === 2"),
    "two thumbnails",
  );
  await looksWell(page, "tiles-pictures");
  await page.getByRole("button", { name: "List" }).click();

  await open(page, "orchard.png");
  await page.getByRole("img", { name: "orchard.png" }).waitFor();
  await looksWell(page, "preview-picture");
  await page.keyboard.press("ArrowRight");
  await page.getByRole("heading", { name: "report.pdf" }).waitFor();
  await page.getByText("3 pages").waitFor();
  await page.locator("canvas[data-drawn]").first().waitFor();
  await page.getByText("Orchard report, page 1").waitFor({ state: "attached" });
  await looksWell(page, "preview-pdf");
  await close(page);

  await open(page, "broken.pdf");
  await page.getByText("This is no PDF that can be read, whatever its name says.").waitFor();
  await close(page);

  const ranges: Response[] = [];
  page.on("response", (response) => {
    if (response.url().includes("clip.webm")) ranges.push(response);
  });
  await open(page, "clip.webm");
  await until(
    () => page.evaluate<boolean>("(document.querySelector('video')?.videoWidth ?? 0) === 320"),
    "the video",
  );
  assert.ok(ranges.length > 0 && ranges.every((response) => response.status() === 206));
  await looksWell(page, "preview-video");
  await close(page);

  await open(page, "notes.md");
  const text = page.getByLabel("Text of the file");
  await until(async () => (await text.inputValue()).includes("prune the pears"), "the text");
  await looksWell(page, "preview-text");
  await close(page);
  await open(page, "data.bin");
  await page.getByText("This kind of file is not shown here. Download it to open it.").waitFor();
  await looksWell(page, "preview-none");
});

test("a large PDF is read by the ranges that its pages need, not whole", LONG, async (t) => {
  const page = await signedIn(t, "ranges@example.com");
  const pdf = samplePdf(2).toString("latin1");
  // A large object before the table, whose place moves by as much.
  const at = pdf.indexOf("xref");
  const filler = `% ${"x".repeat(4_000_000)}\n`;
  const start = at + filler.length;
  const large = pdf.slice(0, at) + filler + pdf.slice(at).replace(/startxref\n\d+/u, `startxref\n${start}`);
  await put(page, "/large.pdf", Buffer.from(large, "latin1"));
  let bytes = 0;
  page.on("response", (response) => {
    if (response.url().includes("large.pdf") && response.status() === 206)
      bytes += Number(response.headers()["content-length"] ?? 0);
  });
  await page.goto(`${site.door}/?show=large.pdf`);
  await page.getByText("Orchard report, page 1").waitFor({ state: "attached" });
  assert.ok(bytes > 0 && bytes < 1_500_000, `${bytes} of ${large.length} bytes`);
});

test("links are made, used and ended in the page, and shares beside them", LONG, async (t) => {
  const page = await signedIn(t, "links@example.com");
  await makeFolder(page, "/photos");
  await put(page, "/photos/a.txt", "apple");
  await page.reload();
  await page.getByLabel("Select photos").check();
  await page.getByRole("button", { name: "Share" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("It is shared with nobody.").waitFor();
  await dialog.getByLabel("E-mail address").fill("bob@example.com");
  await dialog.getByRole("button", { name: "Share", exact: true }).click();
  await dialog.getByRole("button", { name: "Stop sharing with bob@example.com" }).waitFor();
  await dialog.getByRole("button", { name: "Make a link" }).click();
  await looksWell(page, "share-form");
  await dialog.getByLabel("Password, if you want one").fill("pear");
  await dialog.getByLabel("Downloads, at most").fill("5");
  await dialog.getByRole("button", { name: "Make the link" }).click();
  const address = dialog.getByLabel("Address of the new link, shown this once", { exact: true });
  await address.waitFor();
  const url = await address.inputValue();
  assert.match(url, new RegExp(`^${site.door}/l/gl_`, "u"));
  await dialog.getByText("Others can read with a password · 0 of 5 downloads").waitFor();
  await looksWell(page, "share-made");

  const visitor = await (await browser.newContext()).newPage();
  t.after(() => visitor.context().close());
  await visitor.goto(url);
  await visitor.getByRole("heading", { name: "This link asks for a password" }).waitFor();
  await looksWell(visitor, "visitor-password");
  await visitor.getByLabel("Password").fill("pear");
  await visitor.keyboard.press("Enter");
  await visitor.getByRole("link", { name: "a.txt" }).waitFor();
  await looksWell(visitor, "visitor-folder");

  // Dropping has its own limits, and its page shows nothing of the folder.
  await dialog.getByRole("button", { name: "Make another link" }).click();
  await dialog.getByLabel("Others can").selectOption("drop");
  assert.deepEqual(await dialog.getByLabel("Ends after").locator("option").allTextContents(), [
    "1 day",
    "7 days",
    "30 days",
    "1 year",
  ]);
  await dialog.getByLabel("At most so many files").fill("3");
  await looksWell(page, "share-drop");
  await dialog.getByRole("button", { name: "Make the link" }).click();
  await dialog.getByText("Others can send files · 0 of 3 files, 0 bytes of 1 GiB sent").waitFor();
  await visitor.goto(await address.inputValue());
  await visitor.getByRole("heading", { name: "Send files to photos" }).waitFor();
  assert.equal(await visitor.getByText("a.txt").count(), 0);
  await looksWell(visitor, "visitor-drop");
  await close(page);

  await page.getByRole("link", { name: "Links" }).click();
  const ending = page.getByRole("button", { name: "End the link to photos" });
  await until(async () => (await ending.count()) === 2, "both links");
  await looksWell(page, "links");
  await ending.first().click();
  await page.getByText("Nobody gets in by the link to photos any more.").waitFor();
  await until(async () => (await ending.count()) === 1, "one link");
  assert.equal((await visitor.goto(url))?.status(), 404);
  await looksWell(visitor, "visitor-ended");
  await ending.first().click();
  await page.getByText("You have no links: nothing is open to strangers.").waitFor();
  const texts = await textsOfFiles(site.folder);
  for (const act of ["link.create", "link.revoke"]) {
    const line = new RegExp(`"act":"${act.replace(".", "\\.")}".*"door":"[^"]+"`, "u");
    assert.ok(
      texts.some(({ path, text }) => path.endsWith(".log") && line.test(text)),
      `the audit log names the door of ${act}`,
    );
  }

  const bob = await signedIn(t, "bob@example.com");
  await bob.getByRole("link", { name: "Shared with me" }).click();
  await bob.getByText("from links@example.com").waitFor();
  await looksWell(bob, "shared-with-me");
  await open(bob, "photos");
  await bob.getByRole("button", { name: "a.txt", exact: true }).waitFor();
  await bob.getByText("The space of links@example.com").waitFor();
  await looksWell(bob, "shared-folder");
  await bob.getByLabel("Select a.txt").check();
  await bob.getByRole("button", { name: "Rename", exact: true }).waitFor();
  assert.equal(await bob.getByRole("button", { name: "Delete", exact: true }).count(), 0);
  await bob.getByRole("grid").focus();
  await bob.keyboard.press("Delete");
  await bob.getByText("Only its owner may delete a.txt.").waitFor();
});

test(
  "an app password is made in the page, opens WebDAV within its bounds, and is revoked",
  LONG,
  async (t) => {
    const who = "programs@example.com";
    const page = await signedIn(t, who);
    await makeFolder(page, "/music");
    await put(page, "/music/song.txt", "la");
    await page.getByRole("link", { name: "Programs" }).click();
    await page.getByText("There is none yet: no program can reach your files.").waitFor();
    await looksWell(page, "programs-empty");
    await page.getByRole("button", { name: "Make an app password" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("For which program or device").fill("Telephone");
    await dialog.getByLabel("Only below this folder").fill("/nowhere");
    await dialog.getByLabel("It may only read").check();
    await dialog.getByRole("button", { name: "Make", exact: true }).click();
    await dialog.getByRole("alert").waitFor();
    await dialog.getByLabel("Only below this folder").fill("music/");
    await looksWell(page, "programs-dialog");
    await dialog.getByRole("button", { name: "Make", exact: true }).click();
    const secret = page.getByLabel("App password of Telephone, shown this once", { exact: true });
    await secret.waitFor();
    await page.getByText("Reads /music · no end").waitFor();
    await looksWell(page, "programs-made");
    const password = await secret.inputValue();
    assert.match(password, /^gap_/u);
    const authorization = `Basic ${Buffer.from(`${who}:${password}`).toString("base64")}`;
    const ask = async (path: string, init: RequestInit = {}): Promise<number> => {
      const answer = await fetch(`${site.door}/dav/${path}`, { ...init, headers: { authorization } });
      await answer.arrayBuffer();
      return answer.status;
    };
    assert.equal(await ask("music/song.txt"), 200);
    assert.equal(await ask("music/new.txt", { method: "PUT", body: "x" }), 403);
    await page.reload();
    assert.equal(await secret.count(), 0);
    await page.getByRole("button", { name: "Revoke Telephone" }).click();
    await page.getByText("Telephone cannot sign in any more.").waitFor();
    await until(async () => (await ask("music/song.txt")) === 401, "the end of the password");

    // What wants a fresh sign-in says so, and leads there and back.
    await page.route("**/api/app-passwords", (route) =>
      route.fulfill({ status: 403, json: { error: "SIGN_IN_AGAIN", message: "sign in again" } }),
    );
    await page.reload();
    await page.getByText("For your safety this wants a sign-in of the last ten minutes.").waitFor();
    await looksWell(page, "programs-old-sign-in");
    await page.unroute("**/api/app-passwords");
    await page.getByRole("link", { name: "Sign in again" }).click();
    await page.getByLabel("E-mail address").fill(who);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Programs and devices" }).waitFor();

    const other = await signedIn(t, who);
    await page.getByRole("button", { name: "Sign out everywhere" }).click();
    await page.getByText("Sign in to see, upload and share your files.").waitFor();
    await until(async () => {
      await other.reload();
      const over = other.getByText(/Sign in to see, upload|your sign-in has ended/u);
      await over
        .or(other.getByText(/^\d+ items?$/u))
        .first()
        .waitFor();
      return (await over.count()) > 0;
    }, "the end of the other browser's sign-in");
  },
);

test("names are found below a folder whatever their case, and what is found opens", LONG, async (t) => {
  const page = await signedIn(t, "search@example.com");
  for (const path of ["/a", "/a/b", "/a/b/Harvest 2026", "/z"]) await makeFolder(page, path);
  await put(page, "/a/b/harvest.txt", "pears");
  await put(page, "/z/HARVEST.md", "plums");
  await page.reload();
  const find = page.getByRole("searchbox");
  await find.fill("harvest");
  await page.getByText("No name in this folder has “harvest”.").waitFor();
  await looksWell(page, "filtered-empty");
  await find.press("Enter");
  await page.getByText("3 names found in all of your files, of 6.").waitFor();
  await looksWell(page, "search");
  await open(page, "Harvest 2026");
  await page.getByText("Nothing is in this folder.").waitFor();
  await looksWell(page, "empty-folder");
  await page.goBack();
  await open(page, "harvest.txt");
  await until(
    async () => (await page.getByLabel("Text of the file").inputValue()) === "pears",
    "the text of the file",
  );
  assert.match(page.url(), /path=%2Fa%2Fb/u);
  await page.goto(`${site.door}/?find=nothing-of-it`);
  await page.getByText("Nothing found in all of your files, of 6.").waitFor();
  const { status } = await fetch(`${site.door}/api/search?path=/&name=`, { headers: await headersOf(page) });
  assert.equal(status, 400);
});

test("what does not answer is named, with what to do, and the page goes on by itself", LONG, async (t) => {
  const page = await signedIn(t, "away@example.com");
  await makeFolder(page, "/plans");
  await page.reload();
  await page.getByRole("button", { name: "plans", exact: true }).waitFor();
  await page.context().setOffline(true);
  await open(page, "plans");
  await page.getByText("The door does not answer. Is the network there?").waitFor();
  await looksWell(page, "away-door");
  await page.context().setOffline(false);
  await page.getByText("Nothing is in this folder.").waitFor();
  const node = await site.pid(site.node.id);
  process.kill(node, "SIGSTOP");
  try {
    await page.getByRole("button", { name: "My files" }).click();
    await page.getByText(/The server that holds these files takes long to answer/u).waitFor();
    await looksWell(page, "away-files");
  } finally {
    process.kill(node, "SIGCONT");
  }
  await page.getByRole("button", { name: "plans", exact: true }).waitFor();
  const meta = await site.pid("metaserver");
  const fresh = await (await browser.newContext()).newPage();
  t.after(() => fresh.context().close());
  process.kill(meta, "SIGSTOP");
  try {
    await fresh.context().addCookies([{ name: "grove-door-session", value: "gds_unknown", url: site.door }]);
    await fresh.goto(site.door);
    await fresh.getByText("Asking who you are …").waitFor();
    await fresh.getByRole("heading", { name: "Your files are not reachable" }).waitFor();
    await looksWell(fresh, "away-metaserver");
  } finally {
    process.kill(meta, "SIGCONT");
  }
});

test(
  "the first view comes in under 200 KB, installable, and every script from the door itself",
  LONG,
  async (t) => {
    const page = await signedIn(t, "small@example.com");
    const cdp = await page.context().newCDPSession(page);
    await cdp.send("Network.enable");
    await cdp.send("Network.setCacheDisabled", { cacheDisabled: true });
    const urls = new Set<string>();
    let bytes = 0;
    cdp.on("Network.requestWillBeSent", ({ request }) => void urls.add(request.url));
    cdp.on("Network.loadingFinished", ({ encodedDataLength }) => {
      bytes += encodedDataLength;
    });
    await page.reload();
    await page.getByText("Nothing is in this folder.").waitFor();
    assert.ok(urls.size >= 5 && bytes > 50_000 && bytes < 200_000, `${bytes} bytes in ${urls.size}`);
    for (const url of urls) assert.ok(url.startsWith(site.door), url);
    const { installabilityErrors } = await cdp.send("Page.getInstallabilityErrors");
    // A browser without a profile to install into says that alone.
    assert.deepEqual(
      installabilityErrors.map(({ errorId }) => errorId).filter((id) => id !== "in-incognito"),
      [],
    );
  },
);
