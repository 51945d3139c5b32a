// Which requests that change state come from a page of our own (D2, W-06).
import assert from "node:assert/strict";
import { test } from "node:test";
import { senderOf } from "./own-origin.ts";

const HOST = { host: "console.example.net:8443" };

test("Sec-Fetch-Site decides where there is one; else the origin must be the host that was asked, with its scheme and port", () => {
  const table: [Record<string, string>, string][] = [
    [{}, "untold"],
    [{ "sec-fetch-site": "same-origin" }, "own"],
    [{ "sec-fetch-site": "none" }, "own"],
    [{ "sec-fetch-site": "same-site" }, "foreign"],
    [{ "sec-fetch-site": "cross-site" }, "foreign"],
    [{ "sec-fetch-site": "cross-site", origin: "https://console.example.net:8443" }, "foreign"],
    [{ "sec-fetch-site": "" }, "foreign"],
    [{ origin: "https://console.example.net:8443" }, "own"],
    [{ origin: "HTTPS://Console.example.net:8443" }, "own"],
    [{ origin: "http://console.example.net:8443" }, "foreign"],
    [{ origin: "https://console.example.net" }, "foreign"],
    [{ origin: "https://evil.example.net:8443" }, "foreign"],
    [{ origin: "https://console.example.net:8443.evil.net" }, "foreign"],
    [{ origin: "null" }, "foreign"],
    [{ origin: "" }, "foreign"],
  ];
  for (const [headers, sender] of table)
    assert.equal(senderOf({ ...HOST, ...headers }, true), sender, JSON.stringify(headers));
  assert.equal(senderOf({ origin: "https://x" }, true), "foreign", "no host at all");
  assert.equal(senderOf({ ...HOST, origin: "http://console.example.net:8443" }, false), "own");
});
