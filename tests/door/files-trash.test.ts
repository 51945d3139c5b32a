// The trash in the page for files: what a question says is what goes, whatever comes into the list meanwhile.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { PAGE_CHROMIUM } from "#testing/chromium.ts";
import { until } from "#testing/until.ts";
import type { TrashEntry } from "#wire/webapi/files.ts";
import { answeringDoor } from "./answering-door.ts";
import { LONG, startBrowser } from "./files-browser.ts";

let browser: Browser;
before(async () => {
  if (PAGE_CHROMIUM !== undefined) browser = await startBrowser();
});
after(() => browser?.close());

const item = (at: number): TrashEntry => ({
  id: `t${at}`,
  path: `/file-${at}.txt`,
  kind: "file",
  size: 1,
  trashed_ms: 1_790_000_000_000,
  ends_ms: 1_790_000_000_000,
  by: "ann@x.de",
});

test("“Empty the trash” says so, and empties it, when more was read before the answer", LONG, async (t) => {
  const purged: unknown[] = [];
  const second = Promise.withResolvers<void>();
  const door = await answeringDoor(t, {
    "/api/purge": ({ body }) => {
      purged.push(body);
      return { items: 2 };
    },
    "/api/trash": async ({ query }) => {
      if (query.get("page") !== "more") return { items: [item(1)], next: "more" };
      await second.promise;
      return { items: [item(2)], next: "" };
    },
  });
  const page = await browser.newPage();
  await page.goto(`${door}/?view=trash`);
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
