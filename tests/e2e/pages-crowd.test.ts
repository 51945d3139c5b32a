// Tests of the pages with 1,000 nodes, 10,000 users, hostile texts, lost connections, ended sessions.
import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Page } from "playwright-core";
import { PAGE_CHROMIUM } from "#testing/chromium.ts";
import { type FakeCluster, fakeAlert, fakeNode, fakeUser } from "#testing/fake-cluster.ts";
import { HISTORY_COLUMNS } from "#wire/webapi/performance.ts";
import { openNewPage } from "./browser.ts";
import { BUILT, FAKE_URL, type FakeConsole, fakeConsole } from "./fake-console.ts";

const skip = PAGE_CHROMIUM === undefined && "Chromium is not installed";
const NODES = 1_000;
const USERS = 10_000;
/** Compressed by gzip, which every browser takes. */
const SCRIPT_MAX_BYTES = 180_000;

async function open(
  t: TestContext,
  cluster: Partial<FakeCluster>,
): Promise<{ page: Page; fake: FakeConsole; errors: string[] }> {
  const page = await openNewPage(t);
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  const fake = await fakeConsole(page, {
    isOperator: true,
    nodes: [fakeNode(1), fakeNode(2)],
    users: [],
    alerts: [],
    ...cluster,
  });
  return { page, fake, errors };
}

const rowsDrawn = (page: Page): Promise<number> => page.locator("tr[data-index]").count();

test("of a thousand nodes and ten thousand users only what is in sight is drawn, and scrolling reads on to the last", {
  skip,
}, async (t) => {
  const nodes = Array.from({ length: NODES }, (_, index) => fakeNode(index));
  const users = Array.from({ length: USERS }, (_, index) => fakeUser(index));
  const { page, fake, errors } = await open(t, { nodes, users });
  for (const path of ["/", "/nodes", "/performance"]) {
    await page.goto(FAKE_URL + path);
    await page.getByRole("link", { name: "fs-0", exact: true }).waitFor();
    assert.ok((await rowsDrawn(page)) < 60, `${path} draws ${await rowsDrawn(page)} rows`);
    await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)");
    await page.getByRole("link", { name: `fs-${NODES - 1}`, exact: true }).waitFor();
    assert.ok((await rowsDrawn(page)) < 60, `${path} draws ${await rowsDrawn(page)} rows at its end`);
  }
  await page.goto(`${FAKE_URL}/users`);
  await page.getByRole("heading", { name: /^10.000 users$/ }).waitFor();
  for (const last of [199, 399]) {
    // New rows lengthen the page after it was scrolled to its end.
    while (!(await page.getByText(`user${last}@people.example`).isVisible()))
      await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)");
    assert.ok((await rowsDrawn(page)) < 60);
  }
  assert.ok(fake.asked.filter((path) => path === "/api/users").length >= 2);
  assert.deepEqual(errors, []);
});

test("who is led to a node's users sees them without scrolling: its own and nobody else's, and from there the list of the same", {
  skip,
}, async (t) => {
  const users = Array.from({ length: 300 }, (_, index) =>
    fakeUser(index, { home_node_id: index % 2 === 0 ? "n1" : "n2", home_node_name: `fs-${(index % 2) + 1}` }),
  );
  const { page, fake, errors } = await open(t, { users });
  await page.setViewportSize({ width: 1_280, height: 720 });
  const ts = Math.floor(Date.now() / 1_000);
  const points = Array.from({ length: 60 }, (_, index) =>
    HISTORY_COLUMNS.map((column) => (column === "ts" ? ts - (60 - index) * 5 : index)),
  );
  const history = { node_id: "n2", interval_seconds: 5, from: ts - 300, to: ts, columns: HISTORY_COLUMNS };
  fake.replies.set("GET /api/history/n2", { ...history, points });
  await page.goto(`${FAKE_URL}/nodes/n2`);
  await page.locator(".chart canvas").nth(4).waitFor();
  await page.getByRole("link", { name: "Its users" }).click();
  const first = page.getByRole("link", { name: "user1@people.example" });
  await first.waitFor();
  while (((await first.boundingBox())?.y ?? 720) > 680) await page.waitForTimeout(50);
  assert.equal(await page.getByText("user2@people.example").count(), 0);
  await first.click();
  await page.getByRole("complementary", { name: "user1@people.example" }).waitFor();
  await page.getByRole("heading", { name: "150 users" }).waitFor();
  assert.equal(await page.getByText("user2@people.example").count(), 0);
  assert.deepEqual(errors, []);
});

test("minutes of updates leave nothing behind: once the small lines are full, the page holds no more than before", {
  skip,
}, async (t) => {
  const nodes = Array.from({ length: 200 }, (_, index) => fakeNode(index));
  const { page, fake } = await open(t, { nodes });
  const tools = await page.context().newCDPSession(page);
  await page.goto(FAKE_URL);
  await page.getByText(/live \d+ s ago/).waitFor();
  let update = 0;
  const held = async (updates: number): Promise<number> => {
    for (const until = update + updates; update < until; ) {
      update++;
      for (const node of nodes)
        Object.assign(node, { read_mbps: update, uptime_seconds: 3_600 + update * 5 });
      fake.snapshot();
      if (update % 10 === 0) await page.getByText(`0 / ${update} MB/s`, { exact: true }).waitFor();
    }
    await tools.send("HeapProfiler.collectGarbage");
    return (await tools.send("Runtime.getHeapUsage")).usedSize;
  };
  const before = await held(80);
  const grown = (await held(80)) - before;
  t.diagnostic(`${before} bytes, then ${grown} more`);
  // Each update has some 250 KB.
  assert.ok(grown < 1_000_000, `${grown} bytes more`);
});

test("the first view takes less than 180 KB of compressed script", { skip }, async (t) => {
  const { page, fake } = await open(t, { isOperator: false });
  await page.goto(FAKE_URL);
  await page.getByRole("link", { name: "fs-1" }).waitFor();
  const scripts = [...new Set(fake.asked.filter((path) => path.endsWith(".js")))];
  // A file too small for compression is sent uncompressed.
  const sizes = await Promise.all(
    scripts.map(async (path) => {
      const squeezed = await stat(join(BUILT, `${path}.gz`)).catch(() => stat(join(BUILT, path)));
      return squeezed.size;
    }),
  );
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  t.diagnostic(`${scripts.length} scripts, ${bytes} bytes with gzip`);
  assert.ok(scripts.length > 3);
  assert.ok(bytes < SCRIPT_MAX_BYTES, `${bytes} bytes of script`);
});

test("names, alerts and users with markup are shown as text and run nothing", { skip }, async (t) => {
  const evil = `<img src=x onerror="document.body.dataset.hit='1'"><script>document.body.dataset.hit='1'</script>`;
  const link = "javascript:document.body.dataset.hit='1'";
  const { page, errors } = await open(t, {
    nodes: [fakeNode(1, { name: evil }), fakeNode(2, { name: link, version: evil })],
    users: [fakeUser(1, { username: evil, home_node_name: evil, home_node_id: link })],
    alerts: [
      {
        id: "a1",
        timestamp: 1_790_000_000,
        severity: "warning",
        type: "quota_exceeded",
        title: evil,
        message: `${evil} is full`,
        node_id: link,
        node_name: evil,
        username: evil,
        resolved: false,
        key: evil,
        value: 96,
        threshold: 95,
        raised_count: 2,
        acked_by: evil,
      },
    ],
  });
  for (const path of ["/", "/nodes", "/nodes/n2", "/alerts", "/users", "/performance", "/settings"]) {
    await page.goto(FAKE_URL + path);
    await page.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
    await page
      .getByText(path.startsWith("/nodes/") ? link : "<img src=x")
      .first()
      .waitFor();
    assert.equal(await page.locator('img[src="x"], main script, a[href^="javascript"]').count(), 0, path);
    assert.equal(await page.evaluate("document.body.dataset.hit ?? ''"), "", path);
  }
  assert.deepEqual(errors, []);
});

test("a lost connection is said with a countdown; once the console is back the pages catch up by themselves (D8)", {
  skip,
}, async (t) => {
  const { page, fake } = await open(t, {});
  await page.goto(FAKE_URL);
  await page.getByText(/live \d+ s ago/).waitFor();
  fake.isAway = true;
  fake.hangUp(1012);
  await page.getByText(/reconnecting/).waitFor();
  fake.cluster.nodes.push(fakeNode(3));
  const before = fake.asked.length;
  fake.isAway = false;
  await page.getByText(/live \d+ s ago/).waitFor();
  await page.getByRole("link", { name: "fs-3" }).waitFor();
  // Alerts may have come and gone meanwhile, so the page fetches them again.
  await assertSoon(() => fake.asked.slice(before).includes("/api/alerts"));
});

test("the overview's count of users goes on while the page is open; a visitor's page never asks for it", {
  skip,
}, async (t) => {
  const { page, fake } = await open(t, { users: [fakeUser(1)] });
  const visitor = await open(t, { users: [fakeUser(1)], isOperator: false });
  for (const each of [page, visitor.page]) {
    await each.clock.install();
    await each.goto(FAKE_URL);
    await each.getByText("Fills first").waitFor();
  }
  const count = async (): Promise<string | undefined> =>
    /Users\n+(\d+)/.exec(await page.getByRole("main").innerText())?.[1];
  while ((await count()) !== "1") await page.clock.runFor(10);
  fake.cluster.users.push(fakeUser(2));
  await page.clock.fastForward(16_000);
  while ((await count()) !== "2") await page.clock.runFor(10);
  await visitor.page.clock.fastForward(16_000);
  await visitor.page.getByText("Fills first").waitFor();
  assert.ok(!visitor.fake.asked.includes("/api/users"));
});

test("a session that ends soon is announced; one that was ended elsewhere shows what visitors see, and says so (close 4401)", {
  skip,
}, async (t) => {
  const { page, fake } = await open(t, { users: [fakeUser(1)] });
  await page.goto(`${FAKE_URL}/users`);
  await page.getByText("user1@people.example").waitFor();
  await page.getByText(/live \d+ s ago/).waitFor();
  fake.say("session.expiring", { expires_at: Math.floor(Date.now() / 1_000) + 300 });
  await page.getByText("Your session ends soon").waitFor();
  fake.cluster.isOperator = false;
  fake.hangUp(4401);
  await page.getByText("Your session has ended").waitFor();
  await page.getByRole("heading", { name: "This page is for operators" }).waitFor();
  assert.equal(await page.getByText("user1@people.example").count(), 0);
});

test("a console that has forgotten the session while it was away is noticed when it is back", {
  skip,
}, async (t) => {
  const { page, fake } = await open(t, { users: [fakeUser(1)] });
  await page.goto(`${FAKE_URL}/users`);
  await page.getByText("user1@people.example").waitFor();
  await page.getByText(/live \d+ s ago/).waitFor();
  fake.isAway = true;
  fake.hangUp(1012);
  await page.getByText(/reconnecting/).waitFor();
  fake.cluster.isOperator = false;
  fake.isAway = false;
  await page.getByText("Your session has ended").waitFor();
  assert.equal(await page.getByText("user1@people.example").count(), 0);
});

async function assertSoon(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 50));
}

test("rows that a pointer holds go once another question is answered: a search, a name, a severity", {
  skip,
}, async (t) => {
  const users = Array.from({ length: 9 }, (_, index) => fakeUser(index));
  const alerts = [fakeAlert(1, { severity: "critical" }), fakeAlert(2, { severity: "warning" })];
  const { page } = await open(t, { users, alerts });
  await page.goto(`${FAKE_URL}/users`);
  await page.getByRole("link", { name: "user3@people.example" }).hover();
  await page.keyboard.press("/");
  await page.keyboard.type("user7");
  await page.getByRole("link", { name: "user3@people.example" }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: "user7@people.example" }).waitFor();
  await page.goto(`${FAKE_URL}/nodes`);
  await page.getByRole("link", { name: "fs-1", exact: true }).hover();
  await page.getByLabel("Name").fill("fs-2");
  await page.getByRole("link", { name: "fs-1", exact: true }).waitFor({ state: "detached" });
  await page.goto(`${FAKE_URL}/alerts`);
  await page.getByText("What alert 1 says").hover();
  await page.getByLabel("Severity").first().focus();
  await page.keyboard.press("ArrowDown");
  await page.getByRole("option", { name: "warning" }).dispatchEvent("click");
  await page.getByText("What alert 1 says").waitFor({ state: "detached" });
});
