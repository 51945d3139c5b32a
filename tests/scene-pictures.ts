// Takes pictures of every page in every state, at two widths, light and dark, for visual review.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { CHROMIUM, CHROMIUM_FLAGS } from "#testing/chromium.ts";
import { FAKE_URL, type FakeConsole, fakeConsole } from "./e2e/fake-console.ts";
import { answerEverything } from "./e2e/full-answers.ts";
import { fullCluster } from "./e2e/full-cluster.ts";
import { OPERATOR_SCENES, showScene, VISITOR_SCENES } from "./e2e/page-scenes.ts";

const WIDTHS = [360, 1_440];
const LOW = 800;
const HIGH = 4_000;
/** The height of the page with everything that would scroll; side panels scroll by themselves. */
const HEIGHT = `Math.max(document.documentElement.scrollHeight,
  ...[...document.querySelectorAll(".side-panel")].map((panel) => panel.scrollHeight + 64))`;

/** Takes pictures of the scenes whose name has `part` in it. */
export async function takeScenes(folder: string, part: string): Promise<void> {
  if (CHROMIUM === undefined) throw new Error("Chromium is needed to take pictures");
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_FLAGS });
  try {
    for (const who of ["visitor", "operator"] as const) await takeAs(browser, who, folder, part);
  } finally {
    await browser.close();
  }
}

async function takeAs(
  browser: Browser,
  who: "visitor" | "operator",
  folder: string,
  part: string,
): Promise<void> {
  const page = await browser.newPage({ viewport: { width: 1_440, height: LOW }, reducedMotion: "reduce" });
  const now = Math.floor(Date.now() / 1_000);
  const fake = await fakeConsole(page, fullCluster(now, who === "operator"));
  answerEverything(fake, now);
  await page.goto(FAKE_URL);
  await page.getByText(/live \d+ s ago/).waitFor();
  await mkdir(join(folder, who), { recursive: true });
  for (const scene of who === "operator" ? OPERATOR_SCENES : VISITOR_SCENES) {
    if (!scene.name.includes(part)) continue;
    await page.setViewportSize({ width: 1_440, height: LOW });
    await showScene(page, fake, scene);
    await takeOne(page, fake, join(folder, who, scene.name));
    await page.setViewportSize({ width: 1_440, height: LOW });
    await scene.end?.(page, fake);
  }
  await page.close();
}

async function takeOne(page: Page, fake: FakeConsole, path: string): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    for (const width of WIDTHS) {
      // Current figures, since stale pages are dimmed.
      fake.snapshot();
      await page.setViewportSize({ width, height: LOW });
      const height = await page.evaluate<number>(HEIGHT);
      await page.setViewportSize({ width, height: Math.min(Math.max(height, LOW), HIGH) });
      await page.waitForTimeout(250);
      await page.screenshot({ path: `${path}-${width}-${colorScheme}.png`, animations: "disabled" });
    }
  }
}
