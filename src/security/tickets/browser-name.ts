// Names a browser by what it says of itself, in words of our own alone.

/** Characters of a User-Agent header that are looked at. */
export const USER_AGENT_MAX_LENGTH = 512;

/** The first that is found counts: most browsers name others, too. */
const BROWSERS: readonly (readonly [name: string, found: RegExp])[] = [
  ["Edge", /\bEdg(?:e|A|iOS)?\/(\d{1,4})\b/u],
  ["Opera", /\bOPR\/(\d{1,4})\b/u],
  ["Samsung Internet", /\bSamsungBrowser\/(\d{1,4})\b/u],
  ["Firefox", /\b(?:Firefox|FxiOS)\/(\d{1,4})\b/u],
  ["Chrome", /\b(?:HeadlessChrome|Chrome|CriOS)\/(\d{1,4})\b/u],
  ["Safari", /\bVersion\/(\d{1,4})\b.{0,64}\bSafari\//u],
];

const SYSTEMS: readonly (readonly [name: string, found: RegExp])[] = [
  ["iPhone", /\biPhone\b/u],
  ["iPad", /\biPad\b/u],
  ["Android", /\bAndroid\b/u],
  ["Windows", /\bWindows NT\b/u],
  ["ChromeOS", /\bCrOS\b/u],
  ["macOS", /\bMacintosh\b/u],
  ["Linux", /\bLinux\b/u],
];

/**
 * Such as "Firefox 145 on Linux", or "Browser on Linux"; empty for one of which nothing is known. Whatever the
 * header holds, only names of these lists and a number of four digits come out.
 */
export function browserName(userAgent: string): string {
  const text = userAgent.slice(0, USER_AGENT_MAX_LENGTH);
  const system = SYSTEMS.find(([, found]) => found.test(text))?.[0];
  for (const [name, found] of BROWSERS) {
    const version = found.exec(text)?.[1];
    if (version !== undefined) return `${name} ${version}${onSystem(system)}`;
  }
  return system === undefined ? "" : `Browser${onSystem(system)}`;
}

function onSystem(system: string | undefined): string {
  return system === undefined ? "" : ` on ${system}`;
}
