// A browser with the page for files, for tests: signing in, choosing files, axe, pictures for visual review.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { axeFindings } from "#e2e/axe-findings.ts";
import { CHROMIUM_FLAGS, PAGE_CHROMIUM } from "#testing/chromium.ts";
import { ALICE } from "./door-site.ts";

/** For tests with a browser; skipped without one. */
export const LONG = { timeout: 480_000, skip: PAGE_CHROMIUM === undefined ? "no Chromium" : false } as const;

/** Folder for pictures, for visual review. */
const PICTURES = process.env["GROVE_TEST_PICTURES"];
const SIZES = [360, 768, 1_440];
const USUAL = { width: 1_280, height: 800 };

/** Starts Chromium. */
export function startBrowser(flags: readonly string[] = []): Promise<Browser> {
  return chromium.launch({ executablePath: PAGE_CHROMIUM ?? "", args: [...CHROMIUM_FLAGS, ...flags] });
}

/** A page of somebody who has just signed in at a door in mock mode. */
export async function signedIn(
  t: TestContext,
  browser: Browser,
  door: string,
  email = ALICE,
  more: BrowserContextOptions = {},
): Promise<Page> {
  const context = await browser.newContext({ viewport: USUAL, reducedMotion: "reduce", ...more });
  t.after(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  await page.goto(door);
  await page.getByRole("link", { name: "Sign in" }).click();
  await page.getByLabel("E-mail address").fill(email);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "My files" }).waitFor();
  return page;
}

/** Uploads files or a folder as somebody who chooses them. */
export async function choose(page: Page, files: string[] | string, kind: "files" | "folder"): Promise<void> {
  await page
    .locator('input[type="file"]')
    .nth(kind === "files" ? 0 : 1)
    .setInputFiles(files);
}

/** Headers of requests in the name of a page's person. */
export async function headersOf(page: Page): Promise<{ readonly cookie: string; readonly origin: string }> {
  const cookies = await page.context().cookies();
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
  return { cookie, origin: new URL(page.url()).origin };
}

/** Takes pictures at all widths, light and dark, where a folder for them is named. */
export async function picture(page: Page, name: string): Promise<void> {
  if (PICTURES === undefined) return;
  mkdirSync(PICTURES, { recursive: true });
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    for (const width of SIZES) {
      await page.setViewportSize({ width, height: width === 360 ? 740 : 900 });
      await page.screenshot({ path: join(PICTURES, `${name}-${width}-${colorScheme}.png`) });
    }
  }
  await page.setViewportSize(USUAL);
}

/** Axe finds nothing in light and dark, and nothing scrolls sideways at any width. */
export async function looksWell(page: Page, name: string): Promise<void> {
  for (const scheme of ["light", "dark"] as const) {
    assert.deepEqual(await axeFindings(page, scheme), [], name);
  }
  for (const width of SIZES) {
    await page.setViewportSize({ width, height: 740 });
    const beyond = await page.evaluate<number>(
      "document.documentElement.scrollWidth - document.documentElement.clientWidth",
    );
    assert.equal(beyond, 0, `${name} at ${width}`);
  }
  await page.setViewportSize(USUAL);
  await picture(page, name);
}
