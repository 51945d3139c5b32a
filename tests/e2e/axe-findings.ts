// What axe finds against WCAG 2.2 AA on a page, in one of its colour schemes.
import { AxeBuilder } from "@axe-core/playwright";
import type { Page } from "playwright-core";

/** Colours of a page; forced ones are those of a system with high contrast. */
type Scheme = "light" | "dark" | "forced";

const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
/** The rules that depend on colours. */
const COLOUR_RULES = ["color-contrast", "link-in-text-block"];

/** Looks at a page with findings. */
const LOOKS = 12;

/**
 * Shows the page in a scheme, and looks once it has settled: Chromium changes a scheme's colours one after the
 * other. In light colours all rules count, in others those of colours. The page has no frames.
 */
export async function axeFindings(page: Page, scheme: Scheme): Promise<string[]> {
  let found: string[] = [];
  for (let look = 0; look < LOOKS; look++) {
    found = await lookOnce(page, scheme);
    if (found.length === 0) break;
    await page.waitForTimeout(500);
  }
  return found;
}

async function lookOnce(page: Page, scheme: Scheme): Promise<string[]> {
  await page.emulateMedia({
    colorScheme: scheme === "dark" ? "dark" : "light",
    forcedColors: scheme === "forced" ? "active" : "none",
  });
  // The page keeps axe: half a megabyte read and compiled anew would cost more than the look.
  const isThere = await page.evaluate<boolean>('"axe" in window');
  const axe = new AxeBuilder(isThere ? { page, axeSource: "void 0" } : { page })
    // Otherwise axe is put into a second, empty page to gather what it has found.
    .setLegacyMode(true)
    // Of what passes, axe would describe every element.
    .options({ resultTypes: ["violations"] });
  const { violations } = await (scheme === "light"
    ? axe.withTags(TAGS)
    : axe.withRules(COLOUR_RULES)
  ).analyze();
  return violations.map(({ id, nodes }) => `${scheme} ${id}: ${nodes[0]?.html}`);
}
