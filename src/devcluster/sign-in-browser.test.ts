// Signs in at the demonstration's pages with a real browser, without script, in light and dark.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { CHROMIUM } from "#testing/chromium.ts";
import { freePort } from "#testing/free-ports.ts";
import { createDemoProvider } from "./demo-provider.ts";
import { issuerOf, makeProviderKeys } from "./provider-settings.ts";

/** Folder for pictures of the pages, for visual review. */
const PICTURES = process.env["GROVE_TEST_PICTURES"];

test("Chromium signs in and out again without script, and comes back to a loopback port of the client's choice", {
  timeout: 60_000,
  skip: CHROMIUM === undefined ? "Chromium is not installed" : false,
}, async (t) => {
  const callback = createServer((_request, response) => response.end("back at the client"));
  callback.listen(0, "127.0.0.1");
  await once(callback, "listening");
  const redirect = `http://localhost:${(callback.address() as AddressInfo).port}/logincallback`;
  const port = await freePort();
  const provider = createDemoProvider({
    settings: {
      port,
      clientId: "grove",
      redirectUris: ["http://localhost:38485/logincallback"],
      ...(await makeProviderKeys()),
      users: [{ email: "alice@example.com", name: "Alice", password: "alice's password" }],
    },
    clock: systemClock,
    log: silentLogger,
  });
  provider.listen(port, "127.0.0.1");
  await once(provider, "listening");
  const browser = await chromium.launch({
    executablePath: CHROMIUM ?? "",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
    ],
  });
  t.after(async () => {
    await browser.close();
    for (const server of [callback, provider]) {
      server.close();
      server.closeAllConnections();
    }
  });
  const query = new URLSearchParams({
    client_id: "grove",
    redirect_uri: redirect,
    response_type: "code",
    scope: "openid email profile",
    code_challenge: createHash("sha256").update(randomBytes(32)).digest("base64url"),
    code_challenge_method: "S256",
    state: "the state",
  });
  const address = `${issuerOf(port)}/auth?${query.toString()}`;
  for (const colorScheme of ["light", "dark"] as const) {
    const context = await browser.newContext({
      javaScriptEnabled: false,
      colorScheme,
      viewport: { width: 360, height: 740 },
    });
    const page = await context.newPage();
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).origin));
    const picture = async (name: string): Promise<void> => {
      if (PICTURES !== undefined) await page.screenshot({ path: `${PICTURES}/${name}-${colorScheme}.png` });
    };
    await page.goto(address);
    await picture("sign-in");
    await page.getByLabel("E-mail address").fill("alice@example.com");
    await page.getByLabel("Password").fill("wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    assert.match((await page.getByRole("alert").textContent()) ?? "", /not the e-mail address and password/);
    await picture("wrong");
    await page.getByLabel("Password").fill("alice's password");
    await page.keyboard.press("Enter");
    await page.getByText("You are alice@example.com").waitFor();
    await picture("consent");
    await page.getByRole("button", { name: "Allow" }).click();
    await page.getByText("back at the client").waitFor();
    const url = new URL(page.url());
    assert.equal(url.origin + url.pathname, redirect);
    assert.equal(url.searchParams.get("state"), "the state");
    assert.match(url.searchParams.get("code") ?? "", /./);
    const others = asked.filter((origin) => ![issuerOf(port), new URL(redirect).origin].includes(origin));
    assert.deepEqual(others, []);
    await page.goto(address);
    await page.getByRole("button", { name: "Use another account" }).click();
    await page.getByRole("heading", { name: "Sign in to Grove" }).waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByText("back at the client").waitFor();
    assert.equal(new URL(page.url()).searchParams.get("error"), "access_denied");
    await context.close();
  }
});
