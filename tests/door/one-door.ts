// One door, and one browser, for test files that run in one process: files.test.ts and door-programs.test.ts.
import { after } from "node:test";
import type { Browser } from "playwright-core";
import { type DoorSite, openDoorSite } from "./door-site.ts";
import { startBrowser } from "./files-browser.ts";

const ends: (() => Promise<void>)[] = [];
let site: Promise<DoorSite> | undefined;
let browser: Promise<Browser> | undefined;

after(async () => {
  for (const end of ends.toReversed()) await end();
});

/** The door in the name of somebody whom no other tests know; the first call starts it. */
export async function oneDoor(email: string): Promise<DoorSite> {
  site ??= openDoorSite({ after: (hook) => ends.push(hook) });
  return (await site).as(email);
}

/** The browser, which the first call starts. */
export async function oneBrowser(): Promise<Browser> {
  if (browser === undefined) {
    const started = startBrowser();
    browser = started;
    ends.push(async () => (await started).close());
  }
  return browser;
}
