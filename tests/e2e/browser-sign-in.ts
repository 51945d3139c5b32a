// Signs in at the demonstration's identity provider with Chromium, for `grove login`.
import { chromium } from "playwright-core";
import { CHROMIUM, CHROMIUM_FLAGS } from "#testing/chromium.ts";
import { freePort } from "#testing/free-ports.ts";
import { type Ended, type Program, startGrove } from "./processes.ts";

/** A `grove login` that waits for its browser. */
export interface WaitingLogin {
  readonly program: Program;
  /** The address for the browser. */
  readonly consentUrl: URL;
}

/** Starts `grove login` on a machine without a desktop, so that it only prints the address. */
export async function startLogin(
  clusterFile: string,
  env: Readonly<Record<string, string>>,
): Promise<WaitingLogin> {
  // An own port, so that another login on this machine is not disturbed. A native client may have any (RFC
  // 8252).
  const port = await freePort();
  const program = startGrove(["login", "--cluster", clusterFile], {
    env: { ...env, IDP_REDIRECT_URI: `http://localhost:${port}/logincallback` },
  });
  const [address] = await program.says(/^ +(https?:\/\/\S+)$/m);
  return { program, consentUrl: new URL(address.trim()) };
}

/** Who signs in. */
export interface SigningIn {
  readonly email: string;
  readonly password: string;
}

/** Signs in at the provider's pages; returns the last page's text and the login's end. */
export async function signInWithChromium(
  login: WaitingLogin,
  user: SigningIn,
): Promise<{ page: string; ended: Ended }> {
  const page = await signInOnPages(login.consentUrl, user);
  return { page, ended: await login.program.ended };
}

/** Signs in at the provider's pages, in a browser with further flags; returns the last page's text. */
export async function signInOnPages(
  consentUrl: URL,
  user: SigningIn,
  flags: readonly string[] = [],
): Promise<string> {
  const browser = await chromium.launch({
    executablePath: CHROMIUM ?? "",
    args: [...CHROMIUM_FLAGS, ...flags],
  });
  try {
    const page = await browser.newPage();
    await page.goto(consentUrl.href);
    await page.getByLabel("E-mail address").fill(user.email);
    await page.getByLabel("Password").fill(user.password);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("button", { name: "Allow" }).click();
    await page.getByRole("heading", { name: /Signed in|failed|refused/ }).waitFor();
    return await page.locator("body").innerText();
  } finally {
    await browser.close();
  }
}
