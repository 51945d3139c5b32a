// The pages of the demonstration's identity provider: plain HTML without script or foreign resources.
import { createHash } from "node:crypto";

/** The contents of the page for signing in. */
export interface LoginPage {
  readonly emails: readonly string[];
  /** The address typed before. */
  readonly email?: string;
  readonly problem?: string;
}

/** The contents of the page for consent. */
export interface ConsentPage {
  readonly email: string;
  readonly scopes: readonly string[];
}

const STYLE = `
:root { color-scheme: light dark; --page: #eef2f0; --card: #fff; --text: #14231c; --soft: #52635a; --line: #c3cfc8;
  --accent: #17633f; --on-accent: #fff; --wrong: #a11d1d; }
@media (prefers-color-scheme: dark) { :root { --page: #0f1613; --card: #18221d; --text: #e7efea; --soft: #a3b5ab;
  --line: #3b4a42; --accent: #5fd39b; --on-accent: #06251a; --wrong: #ff9c94; } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1.5rem; background: var(--page);
  color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
main { width: 100%; max-width: 25rem; padding: 2rem; background: var(--card); border-radius: 1rem;
  box-shadow: 0 1px 2px #0003, 0 8px 32px #0001; }
.brand { display: flex; align-items: center; gap: .6rem; font-weight: 650; color: var(--accent); }
h1 { margin: 1.25rem 0 .25rem; font-size: 1.45rem; line-height: 1.25; }
p { margin: .25rem 0 1rem; color: var(--soft); }
label { display: block; margin: 1rem 0 .3rem; font-weight: 600; }
input { width: 100%; padding: .65rem .75rem; font: inherit; color: inherit; background: transparent;
  border: 1px solid var(--line); border-radius: .5rem; }
button { width: 100%; margin-top: 1.25rem; padding: .7rem; font: inherit; font-weight: 650; cursor: pointer;
  color: var(--on-accent); background: var(--accent); border: 1px solid var(--accent); border-radius: .5rem; }
button.quiet { margin-top: .6rem; color: var(--accent); background: transparent; border-color: var(--line); }
:is(input, button):focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.problem { padding: .6rem .75rem; color: var(--wrong); border: 1px solid currentColor; border-radius: .5rem; }
ul { margin: .5rem 0 0; padding: 0; list-style: none; border-top: 1px solid var(--line); }
li { padding: .6rem 0; border-bottom: 1px solid var(--line); }
small { display: block; margin-top: 1.5rem; color: var(--soft); }`;

const LEAF = `<svg width="28" height="28" viewBox="0 0 28 28" aria-hidden="true"><path fill="currentColor" d="M24 3C11 3 4 8 4 17c0 2 .4 3.6 1 5l-2 3 2 1 2-3c1.3.9 3 1.4 5 1.4C21 24.4 25 16 24 3Zm-14 17c2-5 5-9 9-12-3 4-6 8-7 12.5Z"/></svg>`;

/** Content-Security-Policy of every page: own style and forms, and redirects to a client on this machine. */
export const PAGE_POLICY: string = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`,
  // Chromium applies form-action to the redirect after a form; the client's loopback port is arbitrary.
  "form-action 'self' http://localhost:* http://127.0.0.1:*",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

const SCOPE_TEXTS: Readonly<Record<string, string>> = {
  openid: "Know that it is you",
  email: "See your e-mail address, which becomes your user name",
  profile: "See your name",
};

// The action is a field and not the button's value, so that a form sent by a script has it too.
const actionField = (action: string): string => `<input type="hidden" name="action" value="${action}">`;
const quietForm = (action: string, label: string): string =>
  `<form method="post">${actionField(action)}<button type="submit" class="quiet">${label}</button></form>`;

/** The page for e-mail address and password. */
export function loginPage(page: LoginPage): string {
  const problem =
    page.problem === undefined ? "" : `<p class="problem" role="alert">${escapeHtml(page.problem)}</p>`;
  const options = page.emails.map((email) => `<option value="${escapeHtml(email)}"></option>`).join("");
  return document(
    "Sign in",
    `<h1>Sign in to Grove</h1>
<p>This is the demonstration's own identity provider.</p>
${problem}
<form method="post">
<label for="email">E-mail address</label>
<input id="email" name="email" type="email" autocomplete="username" list="users" required value="${escapeHtml(page.email ?? "")}"${page.email === undefined ? " autofocus" : ""}>
<datalist id="users">${options}</datalist>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required${page.email === undefined ? "" : " autofocus"}>
<button type="submit">Sign in</button>
${actionField("login")}</form>
${quietForm("cancel", "Cancel")}
<small>The users and their passwords are on the screen where the cluster was started, and in its cluster.json.</small>`,
  );
}

/** The page for consent to the client's access. */
export function consentPage(page: ConsentPage): string {
  const items = page.scopes.map((scope) => `<li>${escapeHtml(SCOPE_TEXTS[scope] ?? scope)}</li>`).join("");
  return document(
    "Allow access",
    `<h1>Let Grove sign you in?</h1>
<p>You are <strong>${escapeHtml(page.email)}</strong>. The program that opened this page will be able to:</p>
<ul>${items}</ul>
<form method="post">${actionField("consent")}<button type="submit" autofocus>Allow</button></form>
${quietForm("other", "Use another account")}
${quietForm("cancel", "Cancel")}`,
  );
}

/** A page with only a message. */
export function messagePage(title: string, text: string): string {
  return document(title, `<h1>${escapeHtml(title)}</h1><p>${escapeHtml(text)}</p>`);
}

function document(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · Grove</title>
<style>${STYLE}</style>
</head>
<body><main><div class="brand">${LEAF}<span>Grove</span></div>
${body}
</main></body>
</html>
`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
