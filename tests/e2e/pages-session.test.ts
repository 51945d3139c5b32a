// Tests of the pages on who is signed in: other windows of the browser, the way back from the sign-in, a failed sign-out.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Page } from "playwright-core";
import { PAGE_CHROMIUM } from "#testing/chromium.ts";
import { fakeNode, fakeUser } from "#testing/fake-cluster.ts";
import { until } from "#testing/until.ts";
import { openNewPage } from "./browser.ts";
import { FAKE_URL, type FakeConsole, fakeConsole } from "./fake-console.ts";

const skip = PAGE_CHROMIUM === undefined && "Chromium is not installed";

async function open(
  t: TestContext,
  path: string,
  { isOperator }: { readonly isOperator: boolean },
): Promise<{ page: Page; fake: FakeConsole }> {
  const page = await openNewPage(t);
  const nodes = [fakeNode(1), fakeNode(2)];
  const fake = await fakeConsole(page, { isOperator, nodes, users: [fakeUser(1)], alerts: [] });
  await page.goto(FAKE_URL + path);
  return { page, fake };
}

/** What a browser says to a window that is looked at again. */
const lookedAt = (page: Page): Promise<unknown> =>
  page.evaluate("document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))");

test("a sign-in and a sign-out in another window are this window's too", { skip }, async (t) => {
  const { page, fake } = await open(t, "/", { isOperator: false });
  await page.getByText(/live \d+ s ago/).waitFor();
  await page.getByRole("link", { name: "Sign in" }).waitFor();
  fake.cluster.isOperator = true;
  await lookedAt(page);
  await page.getByRole("link", { name: "Users" }).waitFor();
  // The socket, too, must be an operator's, and nothing that a visitor was told may stay.
  await until(() => fake.opened() === 2, "an operator's socket");
  await until(
    () => fake.asked.filter((path) => path === "/api/cluster").length === 2,
    "an operator's cluster",
  );
  await page.getByText(/live \d+ s ago/).waitFor();
  fake.cluster.isOperator = false;
  await lookedAt(page);
  await page.getByText("Your session has ended").waitFor();
  await until(() => fake.opened() === 3, "a visitor's socket");
});

test("the sign-in leads back to all that an address said", { skip }, async (t) => {
  const { page, fake } = await open(t, "/actions?do=reboot&node=n2", { isOperator: false });
  fake.replies.set("POST /api/auth/login", () => {
    fake.cluster.isOperator = true;
    return { expires_at: 0 };
  });
  await page.getByRole("main").getByRole("link", { name: "Sign in" }).click();
  await page.getByLabel("Password").first().fill("orchard");
  await page.getByLabel("Password").first().press("Enter");
  await page.waitForURL(`${FAKE_URL}/actions?do=reboot&node=n2`);
});

test("a sign-out that the console does not hear of says so", { skip }, async (t) => {
  const { page, fake } = await open(t, "/", { isOperator: true });
  await page.getByText(/live \d+ s ago/).waitFor();
  fake.isAway = true;
  await page.getByRole("button", { name: "Operator" }).click();
  await page.getByRole("menuitem", { name: "Sign out", exact: true }).click();
  await page.getByText("You are still signed in").waitFor();
  fake.isAway = false;
  fake.replies.set("POST /api/auth/logout", () => {
    fake.cluster.isOperator = false;
    return {};
  });
  await page.getByRole("button", { name: "Operator" }).click();
  await page.getByRole("menuitem", { name: "Sign out", exact: true }).click();
  await page.getByRole("link", { name: "Sign in" }).waitFor();
  assert.equal(await page.getByText("You are still signed in").count(), 0);
});
