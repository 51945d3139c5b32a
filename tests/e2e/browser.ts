// One Chromium for all tests of a file: each has a context of its own in it, and contexts share nothing.
import { after, type TestContext } from "node:test";
import { type Browser, chromium, type Page } from "playwright-core";
import { CHROMIUM_FLAGS, PAGE_CHROMIUM } from "#testing/chromium.ts";

/** Playwright's own half a minute is short for a machine with many browsers. */
const PATIENCE_MS = 60_000;

let started: Promise<Browser> | undefined;

after(async () => (await started)?.close());

/**
 * A page in a new context, closed after the test. The first call starts the browser, which costs half a second
 * of processor time and ends after the last test of the file.
 */
export async function openNewPage(t: TestContext): Promise<Page> {
  started ??= chromium.launch({ executablePath: PAGE_CHROMIUM ?? "", args: CHROMIUM_FLAGS });
  const page = await (await started).newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  t.after(() => page.close());
  return page;
}
