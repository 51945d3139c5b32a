// Takes the pictures of files in the browser for README and docs, at a door of a running cluster.
import assert from "node:assert/strict";
import type { Browser, Page } from "playwright-core";
import { until } from "#testing/until.ts";
import { headersOf } from "./door/files-browser.ts";
import { samplePdf, samplePicture } from "./door/samples.ts";

/** Where, and in whose name. */
export interface FilesRequest {
  readonly browser: Browser;
  readonly door: string;
  readonly email: string;
  readonly password: string;
  /** Keeps a page's picture. */
  readonly shoot: (page: Page, name: string) => Promise<void>;
}

const FOLDERS = ["Harvest 2026", "Invoices", "Orchard plans", "Photographs", "Photographs/Spring"];
const PICTURES = ["Blossom", "Early morning", "Meadow", "New pear trees", "Orchard gate", "River walk"];

/** Takes them. */
export async function takeFiles(request: FilesRequest): Promise<void> {
  const { browser, door, shoot } = request;
  const context = await browser.newContext({ viewport: { width: 1_280, height: 800 }, colorScheme: "light" });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  await signIn(page, request);
  await fill(page, door);
  await page.reload();
  await page.getByText("Budget.csv").waitFor();
  await page.getByLabel("Select Photographs").check();
  await shoot(page, "files-list");
  await page.getByRole("button", { name: "Share" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("E-mail address").fill("bob@example.com");
  await dialog.getByRole("button", { name: "Share", exact: true }).click();
  await dialog.getByRole("button", { name: "Stop sharing with bob@example.com" }).waitFor();
  await dialog.getByRole("button", { name: "Make a link" }).click();
  await dialog.getByLabel("Downloads, at most").fill("20");
  await dialog.getByRole("button", { name: "Make the link" }).click();
  await dialog.getByText("0 of 20 downloads").waitFor();
  await page.emulateMedia({ colorScheme: "dark" });
  await page.mouse.move(0, 0);
  await shoot(page, "files-share");
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 390, height: 780 });
  await page.goto(`${door}/?path=%2FPhotographs`);
  await page.getByRole("button", { name: "Tiles" }).click();
  // Not waitForFunction: the pages let no text be run as a script.
  await until(
    () => page.evaluate<boolean>("[...document.images].filter((i) => i.naturalWidth > 0).length >= 4"),
    "four pictures",
  );
  await shoot(page, "files-telephone");
  await context.close();
}

async function signIn(page: Page, { door, email, password }: FilesRequest): Promise<void> {
  await page.goto(door);
  await page.getByRole("link", { name: "Sign in" }).click();
  await page.getByLabel("E-mail address").fill(email);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Allow" }).click();
  await page.getByRole("heading", { name: "My files" }).waitFor();
}

async function fill(page: Page, door: string): Promise<void> {
  const headers = await headersOf(page);
  for (const name of FOLDERS) {
    const body = JSON.stringify({ root: "", path: `/${name}` });
    const more = { ...headers, "content-type": "application/json" };
    assert.ok((await fetch(`${door}/api/folder`, { method: "POST", headers: more, body })).ok, name);
  }
  const put = async (path: string, body: Buffer, daysAgo: number): Promise<void> => {
    const changed = String(Date.now() - daysAgo * 86_400_000);
    const query = new URLSearchParams({ path, changed }).toString();
    const init = { method: "PUT", headers, body: new Uint8Array(body) };
    const answer = await fetch(`${door}/api/content?${query}`, init);
    assert.ok(answer.ok, await answer.text());
  };
  for (const [index, name] of PICTURES.entries())
    await put(`/Photographs/${name}.png`, await samplePicture(page, 60 + 35 * index), 3 * index);
  await put("/Invoices/2026-10.pdf", samplePdf(2), 20);
  await put("/Harvest 2026/pears.csv", Buffer.alloc(48_000, "1,2\n"), 2);
  await put("/Orchard plans/north field.pdf", samplePdf(1), 40);
  await put("/Budget.csv", Buffer.alloc(18_400, "a,b\n"), 0);
  await put("/Letter to the council.md", Buffer.alloc(5_300, "words "), 1);
  await put("/Lease.pdf", samplePdf(3), 200);
  await put("/Pruning, part 1.mp4", Buffer.alloc(7_900_000), 12);
  await put("/Seedlings.xlsx", Buffer.alloc(240_000), 6);
}
