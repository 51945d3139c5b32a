// Whose page a request comes from, and what a sign-in's cookie may bring.
import assert from "node:assert/strict";
import { validateHeaderValue } from "node:http";
import { test } from "node:test";
import type { PageExchange } from "#door/http/pages.ts";
import { cookieOf, setCookie } from "./cookies.ts";
import { FLOW_MS, localPath, readFlow, writeFlow } from "./flow-cookie.ts";
import { requireOwnChange, requireOwnPage } from "./own-page.ts";

function request(headers: Readonly<Record<string, string>>, isSecure = true): PageExchange {
  const facts = { address: "198.51.100.7", isLoopback: false, isSecure };
  return { headers, facts, host: "files.example.net" } as unknown as PageExchange;
}

const OWN = { origin: "https://files.example.net", "sec-fetch-site": "same-origin" };

test("a change needs this door's own Origin, and a look none of another site", () => {
  requireOwnChange(request(OWN));
  requireOwnChange(request({ origin: OWN.origin }));
  const foreign: Record<string, string>[] = [
    {},
    { "sec-fetch-site": "same-origin" },
    { ...OWN, origin: "null" },
    { ...OWN, origin: "http://files.example.net" },
    { ...OWN, origin: "https://files.example.net.evil.example" },
    { ...OWN, origin: "https://files.example.net:8443" },
    { ...OWN, "sec-fetch-site": "cross-site" },
    { ...OWN, "sec-fetch-site": "same-site" },
    { ...OWN, "sec-fetch-site": "none" },
    { ...OWN, "service-worker": "script" },
  ];
  for (const headers of foreign)
    assert.throws(() => requireOwnChange(request(headers)), JSON.stringify(headers));
  for (const site of ["same-origin", "none"]) requireOwnPage(request({ "sec-fetch-site": site }));
  for (const site of ["cross-site", "same-site", ""])
    assert.throws(() => requireOwnPage(request({ "sec-fetch-site": site })));
});

test("cookies are bound to the host over HTTPS, and one that stands there twice counts for nothing", () => {
  const secure = request({});
  assert.equal(
    setCookie(secure, "session", "gds_x", 60),
    "__Host-grove-door-session=gds_x; Path=/; HttpOnly; SameSite=Lax; Max-Age=60; Secure",
  );
  const plain = request({ cookie: "a=b; grove-door-session=gds_y" }, false);
  assert.equal(cookieOf(plain, "session"), "gds_y");
  assert.doesNotMatch(setCookie(plain, "session", "", 0), /Secure|__Host-/u);
  // Another host of the domain can set the plain name, but never the bound one.
  assert.equal(cookieOf(request({ cookie: "grove-door-session=gds_y" }), "session"), undefined);
  const name = "__Host-grove-door-session";
  assert.equal(cookieOf(request({ cookie: `${name}=a; ${name}=b` }), "session"), undefined);
});

test("a sign-in's cookie ends after ten minutes and leads to a path of this door alone", () => {
  const secrets = { state: "s", nonce: "n", verifier: "v" };
  const text = writeFlow({ secrets, returnTo: "/?path=%2Fa" }, 1_000);
  assert.deepEqual(readFlow(text, 1_000), { secrets, returnTo: "/?path=%2Fa" });
  assert.equal(readFlow(text, 1_000 + FLOW_MS), undefined);
  assert.equal(readFlow(text, 999), undefined);
  for (const broken of [undefined, "", "x", Buffer.from("[1,2]").toString("base64url")])
    assert.equal(readFlow(broken, 1_000), undefined);
  for (const away of ["//evil.example", "/\\evil.example", "https://evil.example", "/a\nb", "/\tb", 7, ""])
    assert.equal(localPath(away), "/");
});

test("the way back after a sign-in fits a header and its cookie, whatever its letters", () => {
  const back = localPath("/?path=/Bücher/日本 \u{1f600}");
  assert.equal(back, "/?path=/B%C3%BCcher/%E6%97%A5%E6%9C%AC%20%F0%9F%98%80");
  assert.equal(localPath(back), back);
  validateHeaderValue("location", back);
  assert.equal(localPath("/\ud800"), "/%EF%BF%BD");
  // Its letters grow threefold: what the cookie cannot hold would end every sign-in.
  const long = localPath(`/${"日".repeat(1_000)}`);
  const secrets = { state: "s".repeat(43), nonce: "n".repeat(43), verifier: "v".repeat(43) };
  const flow = setCookie(request({}), "flow", writeFlow({ secrets, returnTo: long }, 1), 60).split(";", 1)[0];
  assert.equal(readFlow(cookieOf(request({ cookie: flow ?? "" }), "flow"), 1)?.returnTo, "/");
  const most = localPath(`/${"x".repeat(1_023)}`);
  const full = setCookie(request({}), "flow", writeFlow({ secrets, returnTo: most }, 1), 60).split(";", 1)[0];
  assert.equal(readFlow(cookieOf(request({ cookie: full ?? "" }), "flow"), 1)?.returnTo, most);
});
