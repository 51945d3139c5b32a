// Tests of an operator's work on real processes: quota, alert, live output, rollout, short errands.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { PAGE_CHROMIUM } from "#testing/chromium.ts";
import { openNewPage } from "./browser.ts";
import { addUser, commitSources, type DemoSite, openDemoSite, withoutMachines } from "./demo-site.ts";
import { haltOnce } from "./halted-program.ts";
import { startGrove } from "./processes.ts";

const noChromium = PAGE_CHROMIUM === undefined && "Chromium is not installed";
const skip = noChromium === false ? withoutMachines() : noChromium;
const [ALICE, BOB] = ["alice@example.com", "bob@example.com"];
const MIB = 2 ** 20;
const WAIT_MS = 60_000;

async function openPage(t: TestContext, site: DemoSite): Promise<Page> {
  const page = await openNewPage(t);
  page.setDefaultTimeout(WAIT_MS);
  await page.goto(`${site.url}/sign-in`);
  await page.getByRole("textbox", { name: "Password" }).fill(site.password);
  await page.getByRole("main").getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "node-1", exact: true }).first().waitFor();
  return page;
}

/** Begins at the overview and counts the clicks of one errand. */
async function errand(
  page: Page,
  site: DemoSite,
  what: string,
  run: (click: (target: Locator) => Promise<void>) => Promise<void>,
): Promise<void> {
  await page.goto(site.url);
  await page.getByRole("link", { name: "node-1", exact: true }).first().waitFor();
  let clicks = 0;
  await run(async (target) => {
    clicks++;
    await target.click();
  });
  assert.ok(clicks <= 3, `${what}: ${clicks} clicks`);
}

/** Mounts a small disk for a node; returns its unmounting, or undefined where this machine forbids it. */
function mountDisk(folder: string): (() => void) | undefined {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=112m,mode=700", "tmpfs", folder], { stdio: "ignore" });
  } catch {
    return undefined;
  }
  return () => void execFileSync("umount", ["-l", folder]);
}

test("who is new finds the disk that fills first and who fills it, raises a quota, silences a node, restarts its service and reads its log, in three clicks each", {
  skip,
  timeout: 480_000,
}, async (t) => {
  const site = await openDemoSite(t, { nodes: 1, hasSsh: true });
  await addUser(site, BOB, { "scans.zip": 2 * MIB });
  const page = await openPage(t, site);
  const node = page.getByRole("link", { name: "node-1", exact: true });
  const nav = page.getByRole("navigation", { name: "Pages" });

  await errand(page, site, "which disk fills first", async () => {
    // In a cluster's first minutes the rate is unknown, and the page says so.
    await page.getByText("Fills first").waitFor();
    await page.getByText("not known yet: that takes six hours of answers").waitFor();
  });
  await errand(page, site, "who fills it", async (click) => {
    await click(node.first());
    await click(page.getByRole("tab", { name: "Users" }));
    await page.getByRole("row", { name: BOB }).getByText("2 MiB").waitFor();
  });
  await errand(page, site, "raise Bob's quota to 40 GiB", async (click) => {
    await click(nav.getByRole("link", { name: "Users" }));
    await click(page.getByRole("link", { name: BOB }));
    await page.getByRole("textbox", { name: "New quota" }).fill("40 GiB");
    await page.getByText(/^16 GiB → 40 GiB\. bob@example\.com then has .* free\./).waitFor();
    await click(page.getByRole("button", { name: "Set quota" }));
    await page.getByText(/now has 40 GiB, before 16 GiB/).waitFor();
  });
  await errand(page, site, "silence the noisy node until tomorrow", async (click) => {
    await click(node.first());
    await click(page.getByRole("button", { name: "Silence node-1" }));
    await click(page.getByRole("menuitem", { name: "Until tomorrow, 09:00" }));
    await page.getByText(/^Nobody is told of alerts of this node until /).waitFor();
  });
  const before = (await site.cluster()).pids["node-1"];
  await errand(page, site, "restart its service", async (click) => {
    await click(node.first());
    await click(page.getByRole("link", { name: "Restart …" }));
    await click(page.getByRole("button", { name: "Run on node-1" }));
    await page.getByText(`svc-fileserver of node-1 was process ${before}`).waitFor();
    await page.getByText("succeeded").first().waitFor();
  });
  await errand(page, site, "read its log", async (click) => {
    await click(node.first());
    await click(page.getByRole("link", { name: "Read its log" }));
    await page
      .getByText(/quota set/)
      .first()
      .waitFor();
  });
  while ((await site.cluster()).pids["node-1"] === before) await page.waitForTimeout(200);
});

/** Number of chunk files of the first node. */
async function chunkFiles(site: DemoSite): Promise<number> {
  const chunks = join((await site.cluster()).nodes[0]?.data ?? "", "chunks");
  const entries = await readdir(chunks, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).length;
}

test("a quota set in the page stops an upload that runs, a disk that fills raises an alert without a reload, and output comes as it is written", {
  skip,
  timeout: 480_000,
}, async (t) => {
  let hasDisk = false;
  const site = await openDemoSite(t, {
    nodes: 1,
    hasSsh: true,
    reserve: "1MiB",
    prepare: (folder) => {
      const undo = mountDisk(join(folder, "node-1"));
      hasDisk = undo !== undefined;
      return undo;
    },
  });
  await addUser(site, ALICE, { "one.bin": MIB });
  const page = await openPage(t, site);

  const goOn = join(site.folder, "go-on");
  await page.goto(`${site.url}/actions?do=custom&node=node-1`);
  await page
    .getByRole("textbox", { name: "Command" })
    .fill(`echo first; until test -e ${goOn}; do sleep 0.1; done; echo second`);
  await page.getByRole("textbox", { name: /Type “node-1”/ }).fill("node-1");
  await page.getByRole("button", { name: "Run on node-1" }).click();
  await page.getByText("first", { exact: true }).waitFor();
  assert.equal(
    await page.getByText("second", { exact: true }).count(),
    0,
    "the first line came with the last",
  );
  await writeFile(goOn, "");
  await page.getByText("second", { exact: true }).waitFor();

  const big = join(site.folder, "big.bin");
  const bytes = Buffer.alloc(80 * MIB, 7);
  await writeFile(big, bytes);
  await page.goto(`${site.url}/users?user=${encodeURIComponent(ALICE)}`);
  await page.getByRole("textbox", { name: "New quota" }).fill("8 MiB");
  // Of an upload whose size nobody knows, nothing is promised before it comes.
  const env = { XDG_CONFIG_HOME: join(site.folder, "people", ALICE) };
  const before = await chunkFiles(site);
  const running = startGrove(["write", "/running"], { env, input: bytes });
  await haltOnce(running, async () => (await chunkFiles(site)) > before);
  await page.getByRole("button", { name: "Set quota" }).click();
  await page.getByText(/now has 8 MiB/).waitFor();
  running.child.kill("SIGCONT");
  const ended = await running.ended;
  assert.equal(ended.code, 5, ended.stdout + ended.stderr);
  assert.match(ended.stderr, /quota/i);

  if (!hasDisk) return t.diagnostic("no disk of its own could be mounted here: nothing was filled");
  await page.getByRole("textbox", { name: "New quota" }).fill("1 GiB");
  await page.getByRole("button", { name: "Set quota" }).click();
  await page.getByText(/now has 1 GiB/).waitFor();
  await page.goto(site.url);
  await page.evaluate("window.isSamePage = true");
  const filled = await site.as(ALICE, "put", big, "/").ended;
  assert.equal(filled.code, 0, filled.stderr);
  await page.getByText(/The disk of node-1 is .* full, above its limit/).waitFor();
  assert.equal(await page.evaluate("window.isSamePage"), true);
});

/** Waits for the end of a rollout, which says why it stopped before. */
async function bothDone(page: Page): Promise<void> {
  const end = page.getByText(/2 of 2 nodes done\.$|It stopped/).first();
  await end.waitFor({ timeout: 180_000 });
  assert.equal(await end.innerText(), "2 of 2 nodes done.");
}

test("a rollout is planned, run and taken back from the page, each node seen at its gate", {
  skip,
  timeout: 480_000,
}, async (t) => {
  const site = await openDemoSite(t, { nodes: 2, hasSsh: true });
  commitSources(site.folder, "@echo second commit");
  const page = await openPage(t, site);
  await page.goto(`${site.url}/actions?tab=rollouts`);
  await page.getByText("What must hold before the next goes").click();
  await page.getByRole("textbox", { name: "Then it is watched for (seconds)" }).fill("3");
  await page.getByRole("button", { name: "Show the plan" }).click();
  await page.getByText("make build").first().waitFor();
  await page.getByRole("button", { name: "Start on 2 nodes" }).click();
  await page
    .getByText(/waits at its gate/)
    .first()
    .waitFor();
  await bothDone(page);
  await page.getByRole("button", { name: "Go back …" }).click();
  await page.getByRole("button", { name: "Go back on 2 nodes" }).click();
  await page.getByRole("heading", { name: "Back from the rollout of main" }).waitFor();
  await bothDone(page);
});
