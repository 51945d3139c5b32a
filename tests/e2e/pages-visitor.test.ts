// Tests that a visitor's pages are the same to the pixel, independent of the cluster's users (5.8.4).
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Browser, chromium, type Page } from "playwright-core";
import { type Clock, systemClock } from "#base/clock.ts";
import { fakeUsers } from "#base/fake-nodes.fixture.ts";
import { silentLogger } from "#base/log.ts";
import { askHttp } from "#console/app/app.fixture.ts";
import { PASSWORD, testConsoleOptions, tokenOf } from "#console/app/console.fixture.ts";
import { startConsole } from "#console/app/console.ts";
import { History } from "#console/history/history.ts";
import { nodeSample } from "#console/history/sample.fixture.ts";
import { CHROMIUM_FLAGS, PAGE_CHROMIUM } from "#testing/chromium.ts";

/** Every page, including operators' pages, which only say so, and missing ones. */
const PATHS = [
  "/",
  "/nodes",
  "/nodes/n1",
  "/nodes/n1?tab=details",
  "/nodes/gone",
  "/alerts",
  "/performance",
  "/sign-in",
  "/users",
  "/users?user=full@people.example",
  "/actions",
  "/actions?tab=rollouts",
  "/logs",
  "/audit",
  "/settings",
  "/nowhere",
];
/** The frozen wall time. */
const FROZEN_MS = Date.UTC(2026, 10, 21, 12);
/** A redrawn part of a picture may differ from the whole by an invisible shade of a rounded corner. */
const EXACT_FLAGS = [...CHROMIUM_FLAGS, "--disable-partial-raster"];
const SAME_WITHIN_MS = 20_000;
/** For a visitor all operators' pages look the same. */
const DIFFERENT = 9;
const POLL_MS = 5_000;
const POLLS_BEFORE = 120;
const GIB = 2 ** 30;

/** Wall time stands still; steady time goes on. */
const frozen: Clock = { ...systemClock, wallMs: () => FROZEN_MS };

/** Ten minutes of the node's history before the frozen time: later polls share one point of the charts. */
async function fillHistory(folder: string): Promise<void> {
  const history = await History.open({ folder, clock: frozen, log: silentLogger });
  for (let index = 0; index < POLLS_BEFORE; index++) {
    const agoMs = (POLLS_BEFORE - index) * POLL_MS;
    const [bytesWritten, bytesRead] = [index * (index % 40) * 1e6, index * 9e6];
    const place = { wallMs: FROZEN_MS - agoMs, steadyMs: 1e9 - agoMs };
    history.record(
      nodeSample({ nodeId: "n1", ...place, bytesWritten, bytesRead, cpuTempCelsius: 40 + (index % 9) }),
    );
  }
  await history.close();
}

/**
 * The address of a console with one node whose disk is nearly full. It has no users or many, one of them
 * above the quota.
 */
async function consoleWith(t: TestContext, count: number): Promise<string> {
  const { options, node, ends } = await testConsoleOptions(t);
  await fillHistory(options.dataFolder);
  const full = { name: "full@people.example", usedBytes: 3_000, quotaBytes: 1_000 };
  node.users = count === 0 ? [] : [...fakeUsers(count), full];
  node.fields = {
    disk_total_bytes: 100 * GIB,
    disk_used_bytes: 91 * GIB,
    disk_free_bytes: 9 * GIB,
    disk_usage_percent: 91,
  };
  const console = await startConsole({ ...options, clock: frozen });
  ends.push(() => console.stop());
  const token = tokenOf(await askHttp(`${console.url}/api/auth/login`, { body: { password: PASSWORD } }));
  const headers = { authorization: `Bearer ${token}` };
  const says = async (path: string, what: RegExp): Promise<boolean> =>
    what.test((await askHttp(console.url + path, { headers })).text);
  // Waits for rates, which need two polls, and for the alerts of the users and the disk.
  while (!(await says("/api/cluster", /"write_mbps":0/))) await sleep(200);
  while (!(await says("/api/alerts", /storage_warning/))) await sleep(200);
  if (count === 0) return console.url;
  while (!(await says("/api/cluster", /full@/))) await sleep(200);
  while (!(await says("/api/alerts", /quota_exceeded/))) await sleep(200);
  return console.url;
}

async function openPage(browser: Browser, url: string): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1_200, height: 900 }, timezoneId: "UTC" });
  await page.clock.setFixedTime(FROZEN_MS);
  const history = page.waitForResponse(/\/api\/history\/cluster/);
  await page.goto(url);
  await history;
  // Sparklines of the last minutes exist from the second snapshot on.
  await page.locator("tr svg.spark path").waitFor({ state: "attached" });
  return page;
}

async function pictureOf(page: Page, path: string): Promise<Buffer> {
  await page.evaluate(`if (location.pathname + location.search !== ${JSON.stringify(path)})
    history.pushState(null, "", ${JSON.stringify(path)})`);
  await isDrawn(page, path);
  return page.screenshot({ animations: "disabled", fullPage: true });
}

const CHARTS: Readonly<Record<string, number>> = {
  "/nodes/n1": 5,
  "/nodes/n1?tab=details": 5,
  "/performance": 2,
};

async function isDrawn(page: Page, path: string): Promise<void> {
  await page.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
  for (const reading of await page.getByText(/^Reading /).all()) await reading.waitFor({ state: "detached" });
  await page.getByText(/live \d+ s ago/).waitFor();
  const charts = CHARTS[path] ?? 0;
  if (charts > 0)
    await page
      .locator(".chart canvas")
      .nth(charts - 1)
      .waitFor();
}

test("two states that differ only in users are the same pictures of every page to a visitor", {
  skip: PAGE_CHROMIUM === undefined && "Chromium is not installed",
  timeout: 240_000,
}, async (t) => {
  const browser = await chromium.launch({ executablePath: PAGE_CHROMIUM ?? "", args: EXACT_FLAGS });
  t.after(() => browser.close());
  const pages = await Promise.all(
    [0, 300].map(async (count) => openPage(browser, await consoleWith(t, count))),
  );
  const seen = new Set<string>();
  for (const path of PATHS) {
    let isSame = false;
    // One page may be a snapshot ahead of the other; differences by users would stay.
    for (const deadline = Date.now() + SAME_WITHIN_MS; !isSame && Date.now() < deadline; ) {
      const [few, many] = await Promise.all(pages.map((page) => pictureOf(page, path)));
      isSame = few !== undefined && many !== undefined && few.equals(many);
      seen.add(few?.toString("base64") ?? "");
    }
    assert.ok(isSame, path);
  }
  // Empty pictures would be the same too.
  assert.ok(seen.size >= DIFFERENT, `${seen.size} different pictures`);
});
