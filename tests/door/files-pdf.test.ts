// Long PDFs in the page for files.
import assert from "node:assert/strict";
import { test } from "node:test";
import { answeringDoor, entry, listOf } from "./answering-door.ts";
import { LONG, startBrowser } from "./files-browser.ts";
import { samplePdf } from "./samples.ts";

test(
  "a long PDF holds the dots of the pages in sight alone, and the others keep their places",
  LONG,
  async (t) => {
    const pages = 12;
    const pdf = (): Response =>
      new Response(new Uint8Array(samplePdf(pages)), { headers: { "content-type": "application/pdf" } });
    const door = await answeringDoor(t, {
      "/api/list": listOf({ "/": [entry("long.pdf")] }),
      "/api/content": pdf,
    });
    const browser = await startBrowser();
    t.after(() => browser.close());
    const page = await browser.newPage();
    await page.goto(`${door}/?show=long.pdf`);
    const drawn = (number: number) => page.locator(`canvas[data-drawn][aria-label="Page ${number}"]`);
    const heightOf = async (): Promise<number> =>
      page.evaluate<number>("Math.round(document.querySelector('.pdf').scrollHeight)");
    await drawn(1).waitFor();
    for (let number = 2; number <= pages; number++) {
      await page.getByLabel(`Page ${number}`, { exact: true }).scrollIntoViewIfNeeded();
      await drawn(number).waitFor();
    }
    const height = await heightOf();
    const dots = await page.evaluate<number[]>(
      "[...document.querySelectorAll('canvas')].map((c) => c.width * c.height)",
    );
    const held = dots.filter((count) => count > 100_000).length;
    assert.ok(held >= 1 && held <= pages / 2, `${held} of ${pages} pages`);
    await page.getByLabel("Page 1", { exact: true }).scrollIntoViewIfNeeded();
    await drawn(1).waitFor();
    const moved = Math.abs((await heightOf()) - height);
    assert.ok(moved <= 2 * pages, `${moved} px`);
  },
);
