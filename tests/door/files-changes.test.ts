// Changes in the page for files that meet others: readings under way, what went meanwhile, the next person.
import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { PAGE_CHROMIUM } from "#testing/chromium.ts";
import { type Answer, answeringDoor } from "./answering-door.ts";
import { LONG, startBrowser } from "./files-browser.ts";

let browser: Browser;
before(async () => {
  if (PAGE_CHROMIUM !== undefined) browser = await startBrowser();
});
after(() => browser?.close());

async function openAt(
  t: TestContext,
  address: string,
  answers: Readonly<Record<string, Answer>>,
): Promise<Page> {
  const context = await browser.newContext();
  t.after(() => context.close());
  const page = await context.newPage();
  await page.goto((await answeringDoor(t, answers)) + address);
  return page;
}

test(
  "the next person at a browser reads no names of uploads, however the session before ended",
  LONG,
  async (t) => {
    let username = "ann@x.de";
    const page = await openAt(t, "/", {
      "/api/me": () => ({ username, webdav_url: "", recent_until_ms: 0 }),
      "/sign-out": () => new Response(null, { status: 204 }),
    });
    await page.getByText(username).waitFor();
    const key = "grove-upload  /secret.bin 30000000 1";
    const kept = (): Promise<string | null> => page.evaluate((name) => localStorage.getItem(name), key);
    await page.evaluate((name) => localStorage.setItem(name, "/api/uploads/x"), key);
    await page.reload();
    await page.getByText("secret.bin did not arrive whole").waitFor();
    assert.equal(await kept(), "/api/uploads/x");
    username = "bob@x.de";
    await page.reload();
    await page.getByText(username).waitFor();
    assert.equal(await kept(), null);
  },
);
