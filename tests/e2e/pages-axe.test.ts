// Tests every page in every state with axe (WCAG 2.2 AA, three colour schemes), without sideways scroll.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { type Browser, chromium, type Page } from "playwright-core";
import { CHROMIUM_FLAGS, PAGE_CHROMIUM } from "#testing/chromium.ts";
import { axeFindings } from "./axe-findings.ts";
import { FAKE_URL, type FakeConsole, fakeConsole } from "./fake-console.ts";
import { answerEverything } from "./full-answers.ts";
import { fullCluster } from "./full-cluster.ts";
import { OPERATOR_SCENES, type Scene, showScene, VISITOR_SCENES } from "./page-scenes.ts";

const WIDE = { width: 1_280, height: 800 };
/** A telephone, a tablet, a small and a large laptop: no page or table may scroll sideways on them. */
const SIZES = [
  { width: 1_440, height: 900 },
  { width: 1_101, height: 800 },
  { width: 768, height: 900 },
  { width: 360, height: 740 },
];
/** Elements beside the page that might scroll sideways. */
const OVERFLOW = `Math.max(...[document.documentElement, ...document.querySelectorAll(".table-scroll, .side-panel")]
  .map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth))`;
/** Folder for pictures of every scene, for visual review. */
const PICTURES = process.env["GROVE_TEST_PICTURES"];

async function open(browser: Browser, isOperator: boolean): Promise<{ page: Page; fake: FakeConsole }> {
  const page = await browser.newPage({ viewport: WIDE, reducedMotion: "reduce" });
  const now = Math.floor(Date.now() / 1_000);
  const fake = await fakeConsole(page, fullCluster(now, isOperator));
  answerEverything(fake, now);
  await page.goto(FAKE_URL);
  await page.getByText(/live \d+ s ago/).waitFor();
  return { page, fake };
}

/** Goes through scenes in one page; returns the problems. */
async function goThrough(
  browser: Browser,
  who: "visitor" | "operator",
  scenes: readonly Scene[],
): Promise<string[]> {
  const { page, fake } = await open(browser, who === "operator");
  const wrong: string[] = [];
  for (const scene of scenes) {
    await page.emulateMedia({ colorScheme: "light", forcedColors: "none" });
    await showScene(page, fake, scene);
    const found = await axeFindings(page, "light");
    if (who === "operator") found.push(...(await axeFindings(page, "dark")));
    for (const size of SIZES) {
      await page.setViewportSize(size);
      const overflow = await overflowOf(page);
      if (overflow !== 0) found.push(`wider than ${size.width} px by ${overflow}`);
    }
    if (PICTURES !== undefined) await takePictures(page, join(PICTURES, who), scene.name);
    await page.setViewportSize(WIDE);
    // Last, since table rows keep the forced colour.
    if (who === "operator") found.push(...(await axeFindings(page, "forced")));
    await scene.end?.(page, fake);
    wrong.push(...found.map((text) => `${who}, ${scene.name}: ${text}`));
  }
  await page.close();
  return wrong;
}

/** Excess width in px of the page or a table in it, once it has settled. */
async function overflowOf(page: Page): Promise<number> {
  let overflow = 0;
  for (let look = 0; look < 20; look++) {
    overflow = await page.evaluate<number>(OVERFLOW);
    if (overflow === 0) break;
    await page.waitForTimeout(100);
  }
  return overflow;
}

async function takePictures(page: Page, folder: string, name: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, forcedColors: "none" });
    for (const width of [360, 768, 1_440]) {
      await page.setViewportSize({ width, height: 900 });
      await page.waitForTimeout(200);
      await page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`), fullPage: true });
    }
  }
}

test("axe finds nothing on any page in any state, in light, dark and forced colours, and none has to be scrolled sideways", {
  skip: PAGE_CHROMIUM === undefined && "Chromium is not installed",
  timeout: 400_000,
}, async (t) => {
  const browser = await chromium.launch({ executablePath: PAGE_CHROMIUM ?? "", args: CHROMIUM_FLAGS });
  t.after(() => browser.close());
  const wrong = await Promise.all([
    goThrough(browser, "visitor", VISITOR_SCENES),
    goThrough(browser, "operator", OPERATOR_SCENES),
  ]);
  assert.deepEqual(wrong.flat(), []);
});
