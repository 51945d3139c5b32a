// Takes the console's pictures for README and docs from a running cluster (`npm run screenshots`).
//
// With `-- --files` it takes those of files in the browser alone.
// With `-- --scenes FOLDER [PART]` it takes every page in every state instead, from made-up answers, for
// visual review of changed pages.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";
import { CHROMIUM, CHROMIUM_FLAGS } from "#testing/chromium.ts";
import { addUser, commitSources, type DemoSite, openDemoSite } from "./e2e/demo-site.ts";
import { takeFiles } from "./files-pictures.ts";
import { takeScenes } from "./scene-pictures.ts";

const IMAGES = fileURLToPath(new URL("../docs/images/", import.meta.url));
const MIB = 2 ** 20;
const MAX_BYTES = 150_000;
const WIDE = { width: 1_280, height: 800 };

const ends: (() => Promise<void>)[] = [];
try {
  const [flag, folder, part = ""] = process.argv.slice(2);
  if (flag === "--scenes" && folder !== undefined) await takeScenes(folder, part);
  else if (flag === "--files") await takeFilesAlone();
  else await takeAll();
} finally {
  for (const end of ends.toReversed()) await end();
}

async function takeFilesAlone(): Promise<void> {
  if (CHROMIUM === undefined) throw new Error("Chromium is needed to take pictures");
  const site = await openDemoSite({ after: (end) => void ends.push(end) }, { nodes: 1, isReal: true });
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_FLAGS });
  ends.push(() => browser.close());
  await takeFilesOf(browser, site);
}

async function takeFilesOf(browser: Browser, site: DemoSite): Promise<void> {
  const cluster = (await site.cluster()) as Awaited<ReturnType<DemoSite["cluster"]>> & {
    readonly door: string;
  };
  const [person] = cluster.users;
  if (person === undefined) throw new Error("the demonstration has no users");
  await takeFiles({ browser, door: cluster.door, ...person, shoot });
}

async function takeAll(): Promise<void> {
  if (CHROMIUM === undefined) throw new Error("Chromium is needed to take pictures");
  const site = await openDemoSite(
    { after: (end) => void ends.push(end) },
    { nodes: 3, hasSsh: true, isReal: true },
  );
  const [alice = "", bob = "", carol = ""] = (await site.cluster()).users.map(({ email }) => email);
  await addUser(site, alice, { "photos.tar": 40 * MIB });
  await addUser(site, bob, { "scans.zip": 61 * MIB });
  if (carol !== "") await addUser(site, carol, { "lab.img": 85 * MIB });
  const quotaOf = (user: string, bytes: number): Promise<unknown> =>
    site.ask(`/api/users/${encodeURIComponent(user)}/quota`, "PUT", { quota_bytes: bytes });
  await quotaOf(bob, 62 * MIB);
  if (carol !== "") await quotaOf(carol, 100 * MIB);
  const busy = keepBusy(site, alice);
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_FLAGS });
  ends.push(() => browser.close());
  try {
    await takePages(browser, site, bob);
    await takeFilesOf(browser, site);
  } finally {
    await busy();
  }
}

/** Starts a user who writes and reads constantly, to fill the charts; returns the stop. */
function keepBusy(site: DemoSite, user: string): () => Promise<void> {
  const ending = new AbortController();
  const work = (async () => {
    const path = join(site.folder, "busy.bin");
    await writeFile(path, Buffer.alloc(24 * MIB, 7));
    while (!ending.signal.aborted) {
      await site.as(user, "put", path, "/").ended;
      await site.as(user, "get", "/busy.bin", join(site.folder, `back-${Date.now()}.bin`)).ended;
    }
  })();
  return async () => {
    ending.abort();
    await work;
  };
}

async function takePages(browser: Browser, site: DemoSite, user: string): Promise<void> {
  const page = await operator(browser, site, "light");
  // A few minutes of figures make charts.
  await page.waitForTimeout(Number(process.env["GROVE_SCREENSHOT_WAIT_MS"] ?? 120_000));
  await take(page, site, "/", "console-overview");
  await take(page, site, `/nodes/${await busiestNode(page, site)}`, "console-node", {
    width: 1_280,
    height: 1_000,
  });
  await take(page, site, "/alerts", "console-alerts");
  commitSources(site.folder, "@echo another commit");
  await page.goto(`${site.url}/actions?tab=rollouts`);
  await page.getByRole("button", { name: "Show the plan" }).click();
  await page.getByRole("button", { name: "Start on 3 nodes" }).click();
  await page
    .getByText(/waits at its gate/)
    .first()
    .waitFor({ timeout: 120_000 });
  await shoot(page, "console-rollout");
  const dark = await operator(browser, site, "dark");
  await dark.goto(`${site.url}/users?user=${encodeURIComponent(user)}`);
  await dark.getByRole("textbox", { name: "New quota" }).fill("40 GiB");
  await dark.getByText(/^62 MiB → 40 GiB/).waitFor();
  await shoot(dark, "console-users");
  await dark.setViewportSize({ width: 390, height: 780 });
  await dark.goto(site.url);
  await dark.getByRole("link", { name: "node-1", exact: true }).first().waitFor();
  await dark.waitForTimeout(12_000);
  await shoot(dark, "console-telephone");
}

/** The node with the most writes, since its charts show a curve. */
async function busiestNode(page: Page, site: DemoSite): Promise<string> {
  const answer = await page.request.get(`${site.url}/api/cluster`);
  const { nodes } = (await answer.json()) as { nodes: { id: string; bytes_written_total?: number }[] };
  const written = ({ bytes_written_total: bytes = 0 }: (typeof nodes)[number]): number => bytes;
  return nodes.toSorted((a, b) => written(b) - written(a))[0]?.id ?? "node-1";
}

async function operator(browser: Browser, site: DemoSite, colorScheme: "light" | "dark"): Promise<Page> {
  const page = await browser.newPage({ viewport: WIDE, colorScheme });
  page.setDefaultTimeout(60_000);
  await page.goto(`${site.url}/sign-in`);
  await page.getByRole("textbox", { name: "Password" }).fill(site.password);
  await page.getByRole("main").getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "node-1", exact: true }).first().waitFor();
  return page;
}

async function take(
  page: Page,
  site: DemoSite,
  path: string,
  name: string,
  size: { width: number; height: number } = WIDE,
): Promise<void> {
  await page.setViewportSize(size);
  if (path === "/") await page.getByRole("link", { name: "Overview" }).click();
  else await page.goto(site.url + path);
  await page.waitForTimeout(12_000);
  await shoot(page, name);
  await page.setViewportSize(WIDE);
}

async function shoot(page: Page, name: string): Promise<void> {
  const image = await page.screenshot({ animations: "disabled" });
  if (image.length >= MAX_BYTES) throw new Error(`${name} takes ${image.length} bytes`);
  await writeFile(join(IMAGES, `${name}.png`), image);
  process.stdout.write(`${name}.png: ${image.length} bytes\n`);
}
