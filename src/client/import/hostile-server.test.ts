// Tests the sources of an import against servers that answer what they should not.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { ClientError } from "#client/terminal/client-error.ts";
import { storeSettings } from "#storage/object-store/store-settings.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { FolderSource } from "./folder-source.ts";
import { S3Source } from "./s3-source.ts";
import { PacketCutter, PacketReader, PacketWriter, SFTP } from "./sftp-packets.ts";
import { SftpSession } from "./sftp-session.ts";
import { addressBelow, WebDavSource } from "./webdav-source.ts";

/** A session with a server that answers each request with one packet. */
function sessionWith(answer: (type: number, id: number) => Buffer): SftpSession {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const cutter = new PacketCutter();
  output.on("data", (piece: Buffer) => {
    for (const { type, body } of cutter.take(piece)) {
      input.write(answer(type, new PacketReader(body).uint32()));
    }
  });
  return new SftpSession(input, output, "evil.example.org");
}

const id = (value: number): PacketWriter => new PacketWriter().uint32(value);
const handle = (request: number): Buffer => id(request).text("h").packet(SFTP.handle);
const PATH = Buffer.from("/x");

test("what an SFTP server answers too short, too long or beyond all numbers is a failure in words", async () => {
  const isBroken = { code: "SOURCE_FAILED", message: /answers what is not SFTP/ };
  const short = sessionWith((_, request) => id(request).packet(SFTP.attrs));
  await assert.rejects(short.stat(PATH, "x"), isBroken);
  const huge = sessionWith((_, request) =>
    id(request).uint32(1).uint32(0xffffffff).uint32(1).packet(SFTP.attrs),
  );
  await assert.rejects(huge.stat(PATH, "x"), isBroken);
  const noCode = sessionWith((_, request) => id(request).packet(SFTP.status));
  await assert.rejects(noCode.open(PATH, "x"), isBroken);
  await assert.rejects(noCode.read(PATH, 0, 1, "x"), isBroken);
  const more = sessionWith((_, request) => id(request).text("abc").packet(SFTP.data));
  await assert.rejects(more.read(PATH, 0, 2, "x"), isBroken);
  assert.equal((await more.read(PATH, 0, 3, "x"))?.toString(), "abc");
  const longHandle = sessionWith((_, request) => id(request).text(Buffer.alloc(300)).packet(SFTP.handle));
  await assert.rejects(longHandle.open(PATH, "x"), isBroken);
});

test("a listing of SFTP that would never end, or would fill the memory, ends", {
  timeout: 50_000,
}, async () => {
  const isBroken = { code: "SOURCE_FAILED", message: /answers what is not SFTP/ };
  const listing = (entries: (writer: PacketWriter) => PacketWriter): SftpSession =>
    sessionWith((type, request) =>
      type === SFTP.readdir ? entries(id(request)).packet(SFTP.name) : handle(request),
    );
  await assert.rejects(listing((writer) => writer.uint32(0)).list(PATH, "x"), isBroken);
  const long = Buffer.alloc(5_000, "a");
  await assert.rejects(
    listing((writer) => writer.uint32(1).text(long).text("").uint32(0)).list(PATH, "x"),
    isBroken,
  );
  const cut = listing((writer) => writer.uint32(1_000_000).text("a").text("").uint32(0));
  await assert.rejects(cut.list(PATH, "x"), isBroken);
});

test("what a WebDAV server lists elsewhere is asked for at no other host or port", async (t) => {
  const response = (href: string): string =>
    `<response><href>${href}</href><propstat><prop><resourcetype/><getcontentlength>1</getcontentlength></prop>` +
    "<status>HTTP/1.1 200 OK</status></propstat></response>";
  const hrefs = [
    "http://localhost:1/dav/port",
    "https://other.example/dav/host",
    "//x:9/dav/none",
    "evil:/dav/scheme",
  ];
  const server = createServer((request, answer) => {
    request.resume();
    answer.writeHead(207).end(`<multistatus xmlns="DAV:">${hrefs.map(response).join("")}</multistatus>`);
  });
  t.after(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const credentials = { user: "a", password: "b" };
  const { signal } = new AbortController();
  await using source = new WebDavSource(new URL(`http://127.0.0.1:${port}/dav/`), {
    credentials,
    ca: undefined,
    signal,
  });
  const addresses: string[] = [];
  for await (const entry of source.entries()) if (entry.kind === "file") addresses.push(entry.address);
  const base = `http://127.0.0.1:${port}/dav`;
  assert.deepEqual(addresses, [`${base}/port`, `${base}/host`, `${base}/none`]);
});

test("the default port of a WebDAV server is not exchanged for one that its listing names", () => {
  const urls: string[] = [];
  const folder = new URL("https://cloud.example.org/dav/");
  for (const href of ["http://x:8443/dav/a", "//y:9000/dav/b", "/dav/c", "mailto:d"]) {
    urls.push(addressBelow(href, folder)?.href ?? "");
  }
  assert.deepEqual(urls, [
    "https://cloud.example.org/dav/a",
    "https://cloud.example.org/dav/b",
    "https://cloud.example.org/dav/c",
    "",
  ]);
});

test("a server that is away for a moment is asked again by a process that does nothing else", async (t) => {
  let asked = 0;
  const server = createServer((_, response) => {
    asked++;
    response.writeHead(asked === 1 ? 503 : 404, { connection: "close" }).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const module = new URL("./webdav-source.ts", import.meta.url).href;
  const script = `
    import { WebDavSource } from ${JSON.stringify(module)};
    const { signal } = new AbortController();
    const options = { credentials: undefined, ca: undefined, signal };
    const source = new WebDavSource(new URL("http://127.0.0.1:${port}/"), options);
    try {
      for await (const _ of source.entries());
    } catch (error) {
      process.exitCode = error.code === "LOCAL_NOT_FOUND" ? 0 : 1;
    }
  `;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], { stdio: "inherit" });
  const [exitCode] = await once(child, "close");
  assert.equal(exitCode, 0);
  assert.equal(asked, 2);
});

test("Ctrl-C ends an import from a bucket that does not answer", { timeout: 50_000 }, async (t) => {
  const [controller, interrupted] = [new AbortController(), new ClientError("CANCELLED", "interrupted")];
  const server = createServer(() => controller.abort(interrupted));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const key = join(temporaryDirectory(t), "key");
  writeFileSync(key, "access_key_id = a\nsecret_access_key = b\n", { mode: 0o600 });
  const settings = storeSettings(`s3://photos?endpoint=http://127.0.0.1:${port}&credentials=${key}`);
  await using source = new S3Source(settings, undefined, controller.signal);
  const entries = source.entries();
  assert.equal((await entries.next()).value?.kind, "folder");
  await assert.rejects(entries.next(), interrupted);
});

test("a file is no folder to import from, and is not skipped without a word", async (t) => {
  const path = join(temporaryDirectory(t), "file");
  writeFileSync(path, "");
  const entries = new FolderSource(path).entries();
  await assert.rejects(entries.next(), { code: "LOCAL_FILE", message: /is not a folder/ });
});
