// Makes the bundle of a release that these tests run: node tests/released/make-bundle.ts CHECKOUT VERSION
// CHECKOUT is a checkout of the release with its packages (git worktree add, npm ci). 0.1.0 is commit 188720d.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { constants, zstdCompressSync } from "node:zlib";
import { rolldown } from "rolldown";

const [checkout = ".", version = ""] = process.argv.slice(2);
const root = resolve(checkout);
const source = join(root, "src/");
const work = mkdtempSync(join(tmpdir(), "grove-bundle-"));

// Every module is an entry, since workers and commands are loaded by their paths. Those of `grove up` are not.
const entries = readdirSync(source, { recursive: true, encoding: "utf8" }).filter(
  (path) =>
    path.endsWith(".ts") &&
    !/\.(?:test|fixture)\.ts$/.test(path) &&
    !/^(?:testing|devcluster|doctor)\/|(?:^|\/)(?:testdata|fixtures)\//.test(path),
);

const bundle = await rolldown({
  cwd: root,
  input: Object.fromEntries(entries.map((path) => [path.replace(/\.ts$/, ""), `src/${path}`])),
  platform: "node",
  external: [/^@node-rs\//, /^pg-native$/, /^pg-cloudflare/, /\.node$/, /^oidc-provider/],
  plugins: [
    {
      name: "own-place",
      // Shared code moves into other files, and still has to find what lies beside its module.
      transform(code, id) {
        if (!id.startsWith(source) || !code.includes("import.meta.url")) return null;
        const path = id.slice(source.length).replace(/\.ts$/, ".js");
        const url = `import.meta.url.replace(/[/]dist[/](?!.*[/]dist[/]).*$/, ${JSON.stringify(`/dist/${path}`)})`;
        return code.replaceAll("import.meta.url", url);
      },
    },
  ],
  onLog: () => undefined,
});
await bundle.write({
  dir: join(work, "dist"),
  format: "esm",
  entryFileNames: "[name].js",
  chunkFileNames: "chunks/[name]-[hash].js",
  minify: true,
});
await bundle.close();
for (const file of ["grove", "package.json"]) copyFileSync(join(root, file), join(work, file));

const archive = join(work, "all.tar");
const plain = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
execFileSync("tar", [...plain, "-C", work, "-cf", archive, "dist", "grove", "package.json"]);
const params = { [constants.ZSTD_c_compressionLevel]: 19, [constants.ZSTD_c_windowLog]: 24 };
writeFileSync(
  join(import.meta.dirname, `grove-${version}.tar.zst`),
  zstdCompressSync(readFileSync(archive), { params }),
);
rmSync(work, { recursive: true });
