// Tests of the console's pages in a real browser with real processes, for visitors and operators.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type BrowserContext, chromium, type Page } from "playwright-core";
import { CHROMIUM_FLAGS, PAGE_CHROMIUM } from "#testing/chromium.ts";
import { diskFolder, scratchFolder } from "#testing/scratch-folder.ts";
import { grove, startGrove, stopProgram } from "./processes.ts";

interface Site {
  readonly url: string;
  readonly password: string;
  readonly context: BrowserContext;
  /** The browser's errors: Content-Security-Policy violations, uncaught exceptions. */
  readonly complaints: string[];
  /** Hosts other than the console's that got requests. */
  readonly strangers: Set<string>;
}

const ALICE = "alice@example.com";
const PATHS = ["/", "/nodes", "/nodes/node-1", "/alerts", "/performance", "/sign-in"];
const OPERATOR_PATHS = ["/users", "/actions", "/logs", "/audit", "/settings"];

/** A cluster with one node, a user with a file, and a browser before its console. */
async function openSite(t: TestContext): Promise<Site> {
  // More of a quota than this machine may have in memory is shown to fit.
  const folder = scratchFolder("grove-e2e-", diskFolder());
  const up = startGrove(["up", "-mock", "-nodes", "1", "-data", folder]);
  t.after(() => stopProgram(up, "SIGINT"));
  await up.says(/Next, in another terminal/);
  const file = join(folder, "cluster.json");
  const cluster = JSON.parse(await readFile(file, "utf8")) as { console: string; admin_password: string };
  const env = { XDG_CONFIG_HOME: join(folder, "cfg") };
  await writeFile(join(folder, "some.txt"), "some");
  assert.equal((await grove(["login", "--cluster", file, "--mock", ALICE], { env })).code, 0);
  assert.equal((await grove(["put", join(folder, "some.txt"), "/"], { env })).code, 0);
  const browser = await chromium.launch({ executablePath: PAGE_CHROMIUM ?? "", args: CHROMIUM_FLAGS });
  t.after(() => browser.close());
  const context = await browser.newContext();
  const complaints: string[] = [];
  const strangers = new Set<string>();
  context.on("console", (message) => {
    if (message.type() === "error" && !/status of 4\d\d/.test(message.text()))
      complaints.push(message.text());
  });
  context.on("weberror", (error) => complaints.push(String(error.error())));
  context.on("request", (request) => {
    const { host } = new URL(request.url());
    if (host !== new URL(cluster.console).host) strangers.add(host);
  });
  return { url: cluster.console, password: cluster.admin_password, context, complaints, strangers };
}

async function signIn(page: Page, site: Site): Promise<void> {
  await page.goto(`${site.url}/sign-in?back=/users`);
  await page.getByRole("textbox", { name: "Password" }).fill(site.password);
  await page.getByRole("main").getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: /^\d+ users?$/ }).waitFor();
}

/** Opens a page by its address and waits until it has loaded. */
async function show(page: Page, site: Site, path: string): Promise<void> {
  await page.goto(site.url + path);
  const heading = page.getByRole("main").getByRole("heading", { level: 1 });
  await heading.waitFor().catch(async () => {
    assert.fail(
      `${path} shows no heading: ${await page.locator("body").innerText()}; ${site.complaints.join("\n")}`,
    );
  });
  for (const reading of await page.getByText(/^Reading /).all()) await reading.waitFor({ state: "detached" });
}

async function visitorSeesNoUsers(page: Page, site: Site): Promise<void> {
  await show(page, site, "/");
  await page.getByRole("link", { name: "node-1" }).first().waitFor();
  await page.getByText(/live \d+ s ago/).waitFor();
  for (const path of PATHS) {
    await show(page, site, path);
    assert.doesNotMatch(await page.content(), /alice/i, path);
  }
  for (const path of OPERATOR_PATHS) {
    await show(page, site, path);
    await page.getByRole("heading", { name: "This page is for operators" }).waitFor();
  }
}

async function operatorEditsQuota(page: Page): Promise<void> {
  await page.getByRole("link", { name: ALICE }).click();
  const panel = page.getByRole("complementary", { name: ALICE });
  // A user whose node was not polled yet is pending, and its quota cannot be changed.
  await panel.getByRole("textbox", { name: "New quota" }).fill("40 GiB");
  await panel
    .getByText(
      /^16 GiB → 40 GiB\. alice@example\.com then has .* free\. (?:But )?node-1 has .* above its reserve\.$/,
    )
    .waitFor();
  await panel.getByRole("button", { name: "Set quota" }).click();
  await panel.getByText(/now has 40 GiB, before 16 GiB/).waitFor();
  await panel.getByText(/^set to 40 GiB$/).waitFor();
  const row = page.getByRole("row", { name: ALICE });
  await row.getByText("40 GiB").waitFor();
  await panel.getByRole("button", { name: "Undo" }).click();
  await row.getByText("16 GiB (default)").waitFor();
  await page.keyboard.press("Escape");
  await panel.waitFor({ state: "detached" });
}

async function operatorSeesEveryPage(page: Page, site: Site): Promise<void> {
  for (const path of [...PATHS, ...OPERATOR_PATHS]) await show(page, site, path);
  // `grove up` logs into files of this machine, which its console knows (spec 4.1).
  for (const service of ["fileserver", "metaserver", "admin"]) {
    await show(page, site, `/logs?node=node-1&service=${service}`);
    await page.getByText(new RegExp(`[1-9]\\d* lines? of svc-${service} from the file`)).waitFor();
  }
  await show(page, site, "/actions");
  await page.getByText(/^grove node add node-1 USER@127\.0\.0\.1 -meta sqlite:/).waitFor();
  await show(page, site, "/audit?act=quota.*");
  await page.getByRole("cell", { name: ALICE }).first().waitFor();
}

async function keyboardAndHistory(page: Page, site: Site): Promise<void> {
  await show(page, site, "/");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Page or node" }).fill("latency");
  await page.keyboard.press("Enter");
  await page.waitForURL(`${site.url}/performance`);
  await page.getByRole("heading", { name: "Performance" }).waitFor();
  await page.goBack();
  await page.waitForURL(`${site.url}/`);
}

async function signOutHidesEverything(page: Page, site: Site): Promise<void> {
  await show(page, site, "/users");
  await page.getByRole("button", { name: /^Operator/ }).click();
  await page.getByRole("menuitem", { name: "Sign out", exact: true }).click();
  await page.getByRole("heading", { name: "This page is for operators" }).waitFor();
  assert.doesNotMatch(await page.content(), /alice/i);
}

test("visitors see no users; operators see every page, change a quota and undo it; no other host is asked", {
  skip: PAGE_CHROMIUM === undefined && "Chromium is not installed",
  timeout: 240_000,
}, async (t) => {
  const site = await openSite(t);
  const page = await site.context.newPage();
  await visitorSeesNoUsers(page, site);
  await signIn(page, site);
  await operatorEditsQuota(page);
  await operatorSeesEveryPage(page, site);
  await keyboardAndHistory(page, site);
  await signOutHidesEverything(page, site);
  assert.deepEqual(site.complaints, []);
  assert.deepEqual([...site.strangers], []);
});
