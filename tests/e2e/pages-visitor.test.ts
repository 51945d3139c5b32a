// What a visitor sees does not depend on users: two states of a console that differ only in them give the same picture to the last pixel (5.8.4).
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type Browser, chromium } from "playwright-core";
import type { Clock } from "#base/clock.ts";
import { systemClock } from "#base/clock.ts";
import { type ConsoleUnderTest, startTestConsole } from "#console/console.fixture.ts";
import { fakeUsers } from "#console/fake-nodes.fixture.ts";
import { CHROMIUM, CHROMIUM_FLAGS } from "./browser-sign-in.ts";

/** Not those with charts: their lines tell how many polls there were, which two consoles never have alike. */
const PATHS = ["/", "/nodes"];
/** What everybody's clock says. */
const FROZEN_MS = Date.UTC(2026, 10, 21, 12);

/** Wall time stands still; what is measured goes on. */
const frozen: Clock = { ...systemClock, wallMs: () => FROZEN_MS };

/** A console whose only node has no users or many, one of them above the quota. */
async function consoleWith(t: TestContext, count: number): Promise<ConsoleUnderTest> {
  const me = await startTestConsole(t, { clock: frozen });
  const full = { name: "full@people.example", usedBytes: 3_000, quotaBytes: 1_000 };
  me.node.users = count === 0 ? [] : [...fakeUsers(count), full];
  const token = await me.signIn();
  const headers = { authorization: `Bearer ${token}` };
  const alerts = async (): Promise<string> => (await me.ask("/api/alerts", { headers })).text;
  const cluster = async (): Promise<string> => (await me.ask("/api/cluster", { headers })).text;
  // Until there are rates, which two polls give.
  while (!/"write_mbps":0/.test(await cluster())) await new Promise((resolve) => setTimeout(resolve, 200));
  // Until the operator sees them, and what they have raised.
  if (count > 0) {
    while (!(/full@/.test(await cluster()) && /quota_exceeded/.test(await alerts()))) {
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
  return me;
}

async function pictures(browser: Browser, url: string): Promise<Map<string, Buffer>> {
  const page = await browser.newPage({ viewport: { width: 1_200, height: 900 }, timezoneId: "UTC" });
  await page.clock.setFixedTime(FROZEN_MS);
  const taken = new Map<string, Buffer>();
  for (const path of PATHS) {
    await page.goto(url + path);
    await page.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
    for (const reading of await page.getByText(/^Reading /).all())
      await reading.waitFor({ state: "detached" });
    await page.getByText(/live \d+ s ago/).waitFor();
    // Lines of the last minutes are there from the second snapshot on.
    if (path === "/" || path === "/nodes")
      await page.locator("svg.spark path").last().waitFor({ state: "attached" });
    taken.set(path, await page.screenshot({ animations: "disabled" }));
  }
  await page.close();
  return taken;
}

test("two states that differ only in users are the same pictures to a visitor", {
  skip: CHROMIUM === undefined && "Chromium is not installed",
  timeout: 240_000,
}, async (t) => {
  const browser = await chromium.launch({ executablePath: CHROMIUM ?? "", args: CHROMIUM_FLAGS });
  t.after(() => browser.close());
  const few = await pictures(browser, (await consoleWith(t, 0)).console.url);
  const many = await pictures(browser, (await consoleWith(t, 300)).console.url);
  for (const path of PATHS) assert.ok(few.get(path)?.equals(many.get(path) ?? Buffer.alloc(0)), path);
});
