// Finds the browser that tests and benchmarks open pages with.
import { existsSync } from "node:fs";

/** Chromium on this machine, or undefined. */
export const CHROMIUM: string | undefined = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
].find((path) => existsSync(path));

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
