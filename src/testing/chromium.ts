// Finds the browser that tests and benchmarks open pages with.
import { existsSync } from "node:fs";

/** Chromium on this machine, or undefined. */
export const CHROMIUM: string | undefined = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
].find((path) => existsSync(path));

/**
 * The browser for tests of pages: the same without windows of its own, which takes less than two thirds of the
 * processor time, or Chromium where Debian's package of it is not installed.
 */
export const PAGE_CHROMIUM: string | undefined =
  ["/usr/lib/chromium/chromium-headless-shell"].find((path) => existsSync(path)) ?? CHROMIUM;

/** Flags that Chromium needs as root and without a desktop. */
export const CHROMIUM_FLAGS: string[] = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
