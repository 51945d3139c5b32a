// Builds dist/ for packages: the files of src/ as plain JavaScript, one for one. With USE_IDP_AUTH=0 it has
// no code of identity providers (spec 5.9). An argument names another folder.
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Plugin, rolldown } from "rolldown";
import { commitOfClone } from "#os/git-commit.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const SOURCES = join(ROOT, "src/");

const out = resolve(ROOT, process.argv[2] ?? "dist");
const isWithIdpAuth = process.env["USE_IDP_AUTH"] !== "0";

/** Replacements of modules in a build without an identity provider. */
const STAND_INS: Readonly<Record<string, string>> = {
  "security/identity/provider-check.ts": "security/identity/no-provider-check.ts",
  "security/identity/code-flow.ts": "security/identity/no-code-flow.ts",
  "client/signin/code-exchange.ts": "client/signin/no-code-exchange.ts",
  "doctor/provider-checks.ts": "doctor/no-provider-checks.ts",
};
/** Modules that only those and the demonstration's provider use. */
const PROVIDER_ONLY: ReadonlySet<string> = new Set([
  ...Object.keys(STAND_INS),
  "security/identity/issuer-keys.ts",
  "security/identity/provider-discovery.ts",
  "security/identity/provider-fetch.ts",
  "security/identity/tokeninfo.ts",
  "devcluster/demo-provider.ts",
  "devcluster/identity-provider.ts",
  "devcluster/provider-library.ts",
  "devcluster/provider-memory.ts",
  "devcluster/sign-in-routes.ts",
  "devcluster/sign-in-page.ts",
  "devcluster/tokeninfo.ts",
]);
const leftOut: ReadonlySet<string> = isWithIdpAuth ? new Set(Object.values(STAND_INS)) : PROVIDER_ONLY;

// Every module is an entry with its path and name: workers and commands are loaded by relative paths.
const entries = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" }).filter(
  (path) =>
    path.endsWith(".ts") &&
    !leftOut.has(path) &&
    !/\.(?:test|fixture)\.ts$/.test(path) &&
    !/^testing\/|(?:^|\/)(?:testdata|fixtures)\//.test(path),
);

rmSync(out, { recursive: true, force: true });
const bundle = await rolldown({
  cwd: ROOT,
  input: Object.fromEntries(entries.map((path) => [path.replace(/\.ts$/, ""), `src/${path}`])),
  platform: "node",
  // Packages stay external: npm installs them, and their files may look for each other.
  external: /^(?!#)[^./]/,
  treeshake: false,
  transform: { define: { BUILT_WITH_IDP_AUTH: String(isWithIdpAuth) } },
  plugins: isWithIdpAuth ? [] : [withoutIdpAuth()],
  // Rolldown only warns of unresolved imports, which would fail on an installation.
  onLog(level, log) {
    if (level === "warn") throw new Error(log.message);
  },
});
await bundle.write({
  dir: out,
  format: "esm",
  preserveModules: true,
  preserveModulesRoot: "src",
  entryFileNames: "[name].js",
  sourcemap: false,
});
await bundle.close();
// An installed package is no clone, so its commit is written down.
const commit = commitOfClone(ROOT);
if (commit !== null) writeFileSync(join(out, "git-commit"), `${commit}\n`);

/** Redirects imports of identity provider code to their replacements. */
function withoutIdpAuth(): Plugin {
  return {
    name: "without-idp-auth",
    async resolveId(source, importer, options) {
      if (importer === undefined) return null;
      const found = await this.resolve(source, importer, { ...options, skipSelf: true });
      const path = found?.id.startsWith(SOURCES) === true ? found.id.slice(SOURCES.length) : undefined;
      const standIn = path === undefined ? undefined : STAND_INS[path];
      return standIn === undefined ? null : join(SOURCES, standIn);
    },
  };
}
