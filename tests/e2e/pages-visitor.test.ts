// What a visitor sees does not depend on users: two states of a console that differ only in them give the same picture of every page to the last pixel (5.8.4).
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
import { CHROMIUM, CHROMIUM_FLAGS } from "#testing/chromium.ts";

/** Every page, those too of which a visitor sees only that they are for operators, and those that are not there. */
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
/** What everybody's clock says. */
const FROZEN_MS = Date.UTC(2026, 10, 21, 12);
/** A part of a picture that is drawn again may differ from the whole by a shade of a rounded corner that nobody sees. */
const EXACT_FLAGS = [...CHROMIUM_FLAGS, "--disable-partial-raster"];
const SAME_WITHIN_MS = 20_000;
/** Of the pages that are for operators a visitor sees the same. */
const DIFFERENT = 9;
const POLL_MS = 5_000;
const POLLS_BEFORE = 120;
const GIB = 2 ** 30;

/** Wall time stands still; what is measured goes on. */
const frozen: Clock = { ...systemClock, wallMs: () => FROZEN_MS };

/** Ten minutes of the node before the time that stands still: what is polled then is all one point of the charts. */
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

/** The address of a console whose only node, the disk of which is nearly full, has no users or many, one of them above the quota. */
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
  // Until there are rates, which two polls give, and until the operator sees the users and what they and the disk have raised.
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
  // Lines of the last minutes are there from the second snapshot on.
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
  skip: CHROMIUM === undefined && "Chromium is not installed",
  timeout: 240_000,
}, async (t) => {
  const browser = await chromium.launch({ executablePath: CHROMIUM ?? "", args: EXACT_FLAGS });
  t.after(() => browser.close());
  const pages = await Promise.all(
    [0, 300].map(async (count) => openPage(browser, await consoleWith(t, count))),
  );
  const seen = new Set<string>();
  for (const path of PATHS) {
    let isSame = false;
    // One may have taken a snapshot more than the other. What depends on users stays different.
    for (const deadline = Date.now() + SAME_WITHIN_MS; !isSame && Date.now() < deadline; ) {
      const [few, many] = await Promise.all(pages.map((page) => pictureOf(page, path)));
      isSame = few !== undefined && many !== undefined && few.equals(many);
      seen.add(few?.toString("base64") ?? "");
    }
    assert.ok(isSame, path);
  }
  // Pictures of nothing would be the same too.
  assert.ok(seen.size >= DIFFERENT, `${seen.size} different pictures`);
});
