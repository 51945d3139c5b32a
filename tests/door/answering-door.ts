// A door that serves the built page for files and answers its calls as a test says.
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import type { FileEntry, FileProblem, SignedIn } from "#wire/webapi/files.ts";

const BUILT = fileURLToPath(new URL("../../dist/files/", import.meta.url));
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};
const QUOTA = {
  quota_bytes: 100,
  used_bytes: 2,
  live_bytes: 0,
  trash_bytes: 2,
  uploads_bytes: 0,
  inodes: 2,
  inode_limit: 100,
};

/** A call of the page. */
export interface Asked {
  readonly method: string;
  readonly query: URLSearchParams;
  /** What it sends as JSON. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** What answers a path: JSON, or a whole answer. */
export type Answer = (asked: Asked) => object | Promise<object>;

/** A refusal of the door. */
export function refused(status: number, error: string, message = error): Response {
  return Response.json({ error, message } satisfies FileProblem, { status });
}

/** An entry of a folder. */
export function entry(name: string, kind: FileEntry["kind"] = "file"): FileEntry {
  return { name, kind, size: 5, changed_ms: 1_790_000_000_000, etag: `of ${name}`, shared: [] };
}

/** Lists folders by their paths. */
export function listOf(folders: Readonly<Record<string, readonly FileEntry[]>>): Answer {
  return ({ query }) => ({ entries: folders[query.get("path") ?? ""] ?? [], next: "" });
}

const USUAL: Readonly<Record<string, Answer>> = {
  "/api/me": () => ({ username: "ann@x.de", webdav_url: "", recent_until_ms: 0 }) satisfies SignedIn,
  "/api/quota": () => QUOTA,
  "/api/list": listOf({}),
};

/** Starts it, and returns its address; it ends with the test. */
export async function answeringDoor(
  t: TestContext,
  answers: Readonly<Record<string, Answer>>,
): Promise<string> {
  const server = createServer((request, response) => {
    void answerTo(request, { ...USUAL, ...answers }).then(async (answer) => {
      response.writeHead(answer.status, [...answer.headers].flat());
      response.end(Buffer.from(await answer.arrayBuffer()));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function answerTo(
  request: IncomingMessage,
  answers: Readonly<Record<string, Answer>>,
): Promise<Response> {
  const { method = "GET" } = request;
  const { pathname, searchParams: query } = new URL(request.url ?? "/", "http://door");
  if (!pathname.startsWith("/api/")) return builtFile(pathname);
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const isJson = request.headers["content-type"] === "application/json";
  const body = isJson ? JSON.parse(Buffer.concat(parts).toString()) : {};
  const answer = (await answers[pathname]?.({ method, query, body })) ?? refused(404, "NO_SUCH_PATH");
  return answer instanceof Response ? answer : Response.json(answer);
}

async function builtFile(pathname: string): Promise<Response> {
  const name = extname(pathname) === "" ? "index.html" : pathname.slice(1);
  const bytes = await readFile(join(BUILT, name)).catch(() => undefined);
  if (bytes === undefined) return new Response(null, { status: 404 });
  return new Response(new Uint8Array(bytes), {
    headers: { "content-type": TYPES[extname(name)] ?? "text/plain" },
  });
}
