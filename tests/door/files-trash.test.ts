// The trash in the page for files: what a question says is what goes, whatever comes into the list meanwhile.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { PAGE_CHROMIUM } from "#testing/chromium.ts";
import { until } from "#testing/until.ts";
import type { SignedIn, TrashEntry } from "#wire/webapi/files.ts";
import { LONG, startBrowser } from "./files-browser.ts";

const BUILT = fileURLToPath(new URL("../../dist/files/", import.meta.url));
const DOOR = "http://door.test";
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};

let browser: Browser;
before(async () => {
  if (PAGE_CHROMIUM !== undefined) browser = await startBrowser();
});
after(() => browser?.close());

const QUOTA = {
  used_bytes: 2,
  live_bytes: 0,
  trash_bytes: 2,
  uploads_bytes: 0,
  inodes: 2,
  inode_limit: 100,
};
const item = (at: number): TrashEntry => ({
  id: `t${at}`,
  path: `/file-${at}.txt`,
  kind: "file",
  size: 1,
  trashed_ms: 1_790_000_000_000,
  ends_ms: 1_790_000_000_000,
  by: "ann@x.de",
});

test("“Empty the trash” says so, and empties it, when more was read before the answer", LONG, async () => {
  const page = await browser.newPage();
  const purged: unknown[] = [];
  const second = Promise.withResolvers<void>();
  await page.route(`${DOOR}/**`, async (route) => {
    const { pathname, searchParams } = new URL(route.request().url());
    const json = (body: object) =>
      route.fulfill({ contentType: "application/json", body: JSON.stringify(body) });
    switch (pathname) {
      case "/api/me":
        return json({ username: "ann@x.de", webdav_url: "", recent_until_ms: 0 } satisfies SignedIn);
      case "/api/quota":
        return json({ ...QUOTA, quota_bytes: 100 });
      case "/api/shared":
        return json({ places: [] });
      case "/api/purge":
        purged.push(route.request().postDataJSON());
        return json({ items: 2 });
      case "/api/trash": {
        if (searchParams.get("page") !== "more") return json({ items: [item(1)], next: "more" });
        await second.promise;
        return json({ items: [item(2)], next: "" });
      }
      default: {
        const name = extname(pathname) === "" ? "index.html" : pathname.slice(1);
        const contentType = TYPES[extname(name)] ?? "text/plain";
        return route.fulfill({ contentType, body: await readFile(join(BUILT, name)) });
      }
    }
  });
  await page.goto(`${DOOR}/?view=trash`);
  await page.getByRole("button", { name: "Show more" }).click();
  await page.getByRole("button", { name: "Empty the trash" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Everything in the trash will be gone").waitFor();
  second.resolve();
  await page.getByText("file-2.txt").waitFor();
  assert.equal(await dialog.getByText("Everything in the trash will be gone").count(), 1);
  await dialog.getByRole("button", { name: "Delete for good" }).click();
  await until(() => purged.length > 0);
  assert.deepEqual(purged, [{ root: "", ids: [], all: true }]);
  await page.close();
});
