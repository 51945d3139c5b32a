// Tests of the console's pages by keyboard alone: navigation, search, a quota change, a silence.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Page } from "playwright-core";
import { PAGE_CHROMIUM } from "#testing/chromium.ts";
import { fakeAlert, fakeNode, fakeUser } from "#testing/fake-cluster.ts";
import { openNewPage } from "./browser.ts";
import { FAKE_URL, type FakeConsole, fakeConsole } from "./fake-console.ts";

const skip = PAGE_CHROMIUM === undefined && "Chromium is not installed";
const BOB = "user7@people.example";
const GIB = 2 ** 30;

async function open(t: TestContext): Promise<{ page: Page; fake: FakeConsole }> {
  const page = await openNewPage(t);
  const fake = await fakeConsole(page, {
    isOperator: true,
    nodes: [fakeNode(1), fakeNode(2)],
    users: Array.from({ length: 20 }, (_, index) => fakeUser(index)),
    alerts: [fakeAlert(1, { type: "storage_warning", node_id: "n1", node_name: "fs-1" })],
  });
  await page.goto(FAKE_URL);
  await page.getByRole("link", { name: "fs-1", exact: true }).waitFor();
  return { page, fake };
}

/** Presses Tab until an element of this name has the focus, which must be visible. */
async function tabTo(page: Page, name: RegExp): Promise<void> {
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press("Tab");
    const { label, isSeen } = await focused(page);
    assert.ok(isSeen, `the focus on “${label}” cannot be seen`);
    if (name.test(label)) return;
  }
  assert.fail(`${name.source} is not reached by Tab`);
}

function focused(page: Page): Promise<{ label: string; isSeen: boolean }> {
  return page.evaluate(`(() => {
    const at = document.activeElement;
    if (at === document.body) return { label: '', isSeen: true };
    const box = at.closest('.mantine-Input-wrapper') ?? at;
    const style = getComputedStyle(at);
    const around = getComputedStyle(box.querySelector('.mantine-Input-input') ?? at);
    const label = at.labels?.[0]?.textContent ?? '';
    const isSeen = style.outlineStyle !== 'none' || around.borderColor !== getComputedStyle(document.body).borderColor;
    return { label: at.getAttribute('aria-label') ?? (label || at.textContent || at.placeholder || at.tagName), isSeen };
  })()`);
}

test("a quota is found, changed and put back with nothing but keys, and the focus is never lost", {
  skip,
}, async (t) => {
  const { page, fake } = await open(t);
  const quotas: unknown[] = [];
  fake.replies.set(`PUT /api/users/${encodeURIComponent(BOB)}/quota`, (body) => {
    quotas.push((body as { quota_bytes: unknown }).quota_bytes);
    const user = fake.cluster.users[7] ?? {};
    const limit = quotas.length === 1 ? 40 * GIB : 16 * GIB;
    fake.cluster.users[7] = {
      ...user,
      quota_limit: limit,
      quota_source: quotas.length === 1 ? "explicit" : "default",
    };
    const source = { quota_source: fake.cluster.users[7]["quota_source"], home_node_id: "n1" };
    return {
      username: BOB,
      quota_limit: limit,
      previous_limit: 16 * GIB,
      over_quota: false,
      applied_at: 0,
      ...source,
    };
  });
  await page.keyboard.press("Tab");
  assert.match((await focused(page)).label, /Go to the content/);
  await page.keyboard.press("Enter");
  await page.keyboard.press("g");
  await page.keyboard.press("u");
  await page.getByRole("heading", { name: "20 users" }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("user7");
  await page.getByRole("heading", { name: "1 user", exact: true }).waitFor();
  await tabTo(page, /^user7@/);
  await page.keyboard.press("Enter");
  await page.getByRole("complementary", { name: BOB }).waitFor();
  await tabTo(page, /New quota/);
  await page.keyboard.type("40 GiB");
  await page.getByText(/^16 GiB → 40 GiB\. user7@people\.example then has 38\.4 GiB free\./).waitFor();
  await page.keyboard.press("Enter");
  await page.getByText(/now has 40 GiB, before 16 GiB/).waitFor();
  await tabTo(page, /Undo/);
  await page.keyboard.press("Enter");
  await page.getByText(/now has 40 GiB/).waitFor({ state: "detached" });
  assert.deepEqual(quotas, [40 * GIB, 0]);
  await page.keyboard.press("Escape");
  await page.getByRole("complementary", { name: BOB }).waitFor({ state: "detached" });
});

test("an alert is silenced until tomorrow by keys; “?” tells them, and they can be turned off", {
  skip,
}, async (t) => {
  const { page, fake } = await open(t);
  const silences: { matchers: { name: string; value: string }[]; duration: string }[] = [];
  fake.replies.set("POST /api/silences", (body) => {
    silences.push(body as (typeof silences)[0]);
    return { ...(body as object), id: "s1", created_by: "x", created_at: 0, starts_at: 0, state: "active" };
  });
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).getByText("Performance").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog", { name: "Keys" }).waitFor({ state: "detached" });
  await page.keyboard.press("g");
  await page.keyboard.press("a");
  await page.getByRole("heading", { name: "1 open alert" }).waitFor();
  await tabTo(page, /^Silence /);
  await page.keyboard.press("Enter");
  const tomorrow = page.getByRole("menuitem", { name: "Until tomorrow, 09:00" });
  await tomorrow.waitFor();
  while (!(await focused(page)).label.startsWith("Until tomorrow")) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await assertSoon(() => silences.length === 1);
  assert.deepEqual(
    silences[0]?.matchers.map(({ name, value }) => `${name}=${value}`),
    ["type=storage_warning", "node_id=n1"],
  );
  // The console's clock decides when that is: this machine's may be wrong.
  assert.equal(silences[0]?.duration, "tomorrow 09:00");

  await page.getByRole("heading", { level: 1 }).click();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await tabTo(page, /Single keys/);
  await page.keyboard.press("Space");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog", { name: "Keys" }).waitFor({ state: "detached" });
  await page.keyboard.press("g");
  await page.keyboard.press("n");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Page or node" }).waitFor();
  assert.equal(new URL(page.url()).pathname, "/alerts");
});

async function assertSoon(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 50));
}
