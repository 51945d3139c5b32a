// Serves the console's pages: the built files of web/, with one document for every page address.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import fastifyStatic from "@fastify/static";
import type { FastifyReply } from "fastify";
import type { App } from "#console/http/route.ts";

/** Addresses of pages; web/app.tsx maps them to components. */
const PAGES = [
  "/",
  "/nodes",
  "/nodes/:id",
  "/nodes/:id/service",
  "/moves",
  "/users",
  "/alerts",
  "/actions",
  "/actions/rollouts/:id",
  "/actions/:id",
  "/logs",
  "/performance",
  "/audit",
  "/settings",
  "/sign-in",
] as const;

/** Folders of the built pages: beside the program in a package, in dist/ of a clone. */
const FOLDERS: readonly string[] = ["../../web/", "../../../dist/web/"].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
);

const YEAR_SECONDS = 31_536_000;

/** Folder of the built pages; undefined in a clone without a build. */
export function builtPages(): string | undefined {
  return FOLDERS.find((folder) => existsSync(`${folder}index.html`));
}

/**
 * Registers the pages. Browsers cache files below /assets/, whose names are hashes, and revalidate the
 * document. Without built pages every address answers how to build them.
 */
export async function pageRoutes(app: App, folder: string | undefined): Promise<void> {
  if (folder === undefined) {
    for (const path of PAGES)
      app.get(path, ROUTE, (_request, reply) => reply.type("text/html").send(NOT_BUILT));
    return;
  }
  // Without ranges, which nobody needs of small files: one beyond the end would be an error of the console.
  await app.register(fastifyStatic, { root: folder, serve: false, preCompressed: true, acceptRanges: false });
  for (const path of PAGES) {
    app.get(path, ROUTE, (_request, reply) => sendPage(reply, "index.html", "no-cache"));
  }
  app.get("/icon.svg", ROUTE, (_request, reply) => sendPage(reply, "icon.svg", "max-age=86400"));
  app.get<{ Params: { file: string } }>("/assets/:file", ROUTE, (request, reply) =>
    sendPage(reply, `assets/${request.params.file}`, `max-age=${YEAR_SECONDS}, immutable`),
  );
}

/** Pages are public: they hold no data of the cluster, and the API behind them checks access. */
const ROUTE = { config: { auth: "public" as const }, schema: { hide: true } };

function sendPage(reply: FastifyReply, file: string, caching: string): FastifyReply {
  return reply.sendFile(file, { cacheControl: false }).header("cache-control", caching);
}

const NOT_BUILT = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Grove</title>
<h1>The pages of this console were not built</h1>
<p>Run <code>npm run build:web</code> in the clone and start it again. The interface works without them:
<a href="/api/openapi.json">/api/openapi.json</a> describes it.</p>
`;
