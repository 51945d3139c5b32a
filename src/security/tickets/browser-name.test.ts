// Names of browsers: what common ones say of themselves, and that nothing else of it comes out.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { browserName, USER_AGENT_MAX_LENGTH } from "./browser-name.ts";

const WEBKIT = "AppleWebKit/605.1.15 (KHTML, like Gecko)";
const BLINK = "AppleWebKit/537.36 (KHTML, like Gecko)";

test("common browsers and systems are named, each by the name that people know", () => {
  const named: readonly (readonly [string, string])[] = [
    ["Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0", "Firefox 145 on Linux"],
    [
      `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${BLINK} Chrome/142.0.0.0 Safari/537.36`,
      "Chrome 142 on Windows",
    ],
    [
      `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${BLINK} Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0`,
      "Edge 142 on Windows",
    ],
    [
      `Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) ${BLINK} Chrome/142.0.0.0 Safari/537.36`,
      "Chrome 142 on ChromeOS",
    ],
    [
      `Mozilla/5.0 (Windows NT 10.0) ${BLINK} Chrome/141.0.0.0 Safari/537.36 OPR/125.0.0.0`,
      "Opera 125 on Windows",
    ],
    [
      `Mozilla/5.0 (Linux; Android 10; K) ${BLINK} SamsungBrowser/29.0 Chrome/136.0.0.0 Mobile Safari/537.36`,
      "Samsung Internet 29 on Android",
    ],
    [
      `Mozilla/5.0 (Linux; Android 10; K) ${BLINK} Chrome/142.0.0.0 Mobile Safari/537.36`,
      "Chrome 142 on Android",
    ],
    [
      `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${WEBKIT} Version/26.1 Safari/605.1.15`,
      "Safari 26 on macOS",
    ],
    [
      `Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) ${WEBKIT} Version/26.1 Mobile/15E148 Safari/604.1`,
      "Safari 26 on iPhone",
    ],
    [
      `Mozilla/5.0 (iPad; CPU OS 18_7 like Mac OS X) ${WEBKIT} CriOS/142.0.7444.77 Mobile/15E148 Safari/604.1`,
      "Chrome 142 on iPad",
    ],
    [
      `Mozilla/5.0 (X11; Linux x86_64) ${BLINK} HeadlessChrome/141.0.0.0 Safari/537.36`,
      "Chrome 141 on Linux",
    ],
    ["Lynx/2.9.2 libwww-FM/2.14 (Linux)", "Browser on Linux"],
    ["Firefox/145.0", "Firefox 145"],
    ["curl/8.5.0", ""],
    ["", ""],
    // Longer numbers are none of a browser's.
    ["Firefox/99999", ""],
    [`${" ".repeat(USER_AGENT_MAX_LENGTH)}Firefox/145.0`, ""],
  ];
  for (const [text, name] of named) assert.equal(browserName(text), name, text);
});

test("whatever the header holds, a name has known letters alone and few of them", () => {
  const part = fc.constantFrom(
    "Firefox/1",
    "Chrome/22",
    "<b>",
    "\r\n",
    "\u202e",
    "Linux",
    "Windows NT",
    " ",
    "Version/",
  );
  const header = fc.oneof(
    fc.string({ unit: "binary", maxLength: 900 }),
    fc.array(part).map((parts) => parts.join("")),
  );
  fc.assert(
    fc.property(header, (text) => {
      assert.match(
        browserName(text),
        /^(?:[A-Za-z]{1,8}(?: Internet)?(?: \d{1,4})?(?: on [A-Za-z]{3,8})?)?$/u,
      );
    }),
    { numRuns: 2_000 },
  );
});
