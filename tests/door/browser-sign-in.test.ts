// Signing in at a door with Chromium at the demonstration's identity provider, over the cluster's real TLS.
import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { type Browser, chromium, type Page } from "playwright-core";
import { type DemoSite, openDemoSite } from "#e2e/demo-site.ts";
import { CHROMIUM, CHROMIUM_FLAGS } from "#testing/chromium.ts";

const LONG = { timeout: 180_000, skip: CHROMIUM === undefined ? "no Chromium" : false };
const ALICE = "alice@example.com";

const ends: (() => Promise<void>)[] = [];
let site: DemoSite;
let browser: Browser;
let door = "";
let password = "";
before(async () => {
  if (CHROMIUM === undefined) return;
  const request = { nodes: 1, reserve: "64MiB", isReal: true };
  site = await openDemoSite({ after: (hook) => ends.push(hook) }, request);
  const cluster = (await site.cluster()) as Awaited<ReturnType<DemoSite["cluster"]>> & {
    readonly door: string;
  };
  ({ door } = cluster);
  password = cluster.users.find(({ email }) => email === ALICE)?.password ?? assert.fail(ALICE);
  browser = await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_FLAGS });
});
after(async () => {
  await browser?.close();
  for (const end of ends.toReversed()) await end();
});

async function signIn(t: TestContext): Promise<{ readonly page: Page; readonly callback: string }> {
  const context = await browser.newContext();
  t.after(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  let callback = "";
  page.on("request", (request) => {
    if (request.url().startsWith(`${door}/sign-in/callback`)) callback = request.url();
  });
  await page.goto(`${door}/?view=shared`);
  await page.getByRole("link", { name: "Sign in" }).click();
  await page.getByLabel("E-mail address").fill(ALICE);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Allow" }).click();
  await page.getByRole("heading", { name: "Shared with me" }).waitFor();
  return { page, callback };
}

test(
  "a person signs in at the provider, comes back to where they were, shares, and signs out for good",
  LONG,
  async (t) => {
    const { page, callback } = await signIn(t);
    const [cookie, ...others] = (await page.context().cookies(door)).filter(({ name }) =>
      name.includes("grove-door"),
    );
    assert.deepEqual(others, []);
    assert.ok(cookie !== undefined && cookie.httpOnly && cookie.sameSite === "Lax");
    assert.equal(await page.evaluate("document.cookie"), "");
    await page.getByRole("link", { name: "My files" }).click();
    await page.getByRole("button", { name: "New folder" }).click();
    await page.getByLabel("Name", { exact: true }).fill("plans");
    await page.getByRole("button", { name: "Make" }).click();
    await page.getByLabel("Select plans").check();
    await page.getByRole("button", { name: "Share" }).click();
    await page.getByLabel("E-mail address").fill("bob@example.com");
    await page.getByRole("dialog").getByRole("button", { name: "Share" }).click();
    await page.getByRole("button", { name: "Stop sharing with bob@example.com" }).waitFor();
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByText("◆ shared").waitFor();
    // The same return address again, in another browser or in this one, opens nothing.
    const other = await browser.newContext();
    t.after(() => other.close());
    const stranger = await other.newPage();
    await stranger.goto(callback);
    await stranger.getByText("That sign-in did not work. Begin again.").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("link", { name: "Sign in" }).waitFor();
    const headers = { cookie: `${cookie.name}=${cookie.value}` };
    assert.equal((await fetch(`${door}/api/me`, { headers })).status, 401);
  },
);
