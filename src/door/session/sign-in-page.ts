// The sign-in form of a door in mock mode, where an e-mail address is enough.
import { createHash } from "node:crypto";

const STYLE = `
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:26rem;padding:4rem 1rem}
h1{font-size:28px;margin:0 0 .5rem}label{display:block;font-weight:600;margin:1.5rem 0 .25rem}
input,button{font:inherit;box-sizing:border-box;width:100%;padding:.6rem .75rem;border-radius:6px;border:1px solid #767676}
button{margin-top:1rem;border-color:#277149;background:#277149;color:#fff;font-weight:600;cursor:pointer}
`;

/** Headers of the form: nothing runs in it. */
export const FORM_HEADERS: Readonly<Record<string, string>> = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": `default-src 'none'; style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
  "cross-origin-resource-policy": "same-origin",
  // The form's POST has to tell its Origin.
  "referrer-policy": "same-origin",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "cache-control": "no-store",
};

/** The form. */
export const MOCK_FORM = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign in - Grove</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>Sign in</h1>
<p>This cluster runs in mock mode for trials: an e-mail address is enough, and nobody checks it.</p>
<form method="post">
<label for="email">E-mail address</label>
<input id="email" name="email" type="email" autocomplete="username" required autofocus>
<button>Sign in</button>
</form>
</main>
</body>
</html>
`;
