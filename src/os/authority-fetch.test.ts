// The fetch with its own authority, against real servers: trust, redirects, bodies, cancellation.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { createAuthorityFetch } from "./authority-fetch.ts";

const folder = scratchFolder("os-fetch-");
const made: Record<"own" | "other", { key: string; cert: string }> = {
  own: makeCertificate("own"),
  other: makeCertificate("other"),
};
let server: Server;
let base = "";

function makeCertificate(name: string): { key: string; cert: string } {
  const key = join(folder, `${name}.key`);
  const cert = join(folder, `${name}.pem`);
  const subject = ["-subj", `/CN=${name}`, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  execFileSync("openssl", ["req", "-x509", ...kind, ...subject, "-keyout", key, "-out", cert], {
    stdio: "ignore",
  });
  return { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
}

before(async () => {
  server = createServer(made.own, (incoming, outgoing) => {
    if (incoming.url === "/redirect") outgoing.writeHead(302, { location: "/elsewhere" }).end();
    else if (incoming.url === "/empty") outgoing.writeHead(204).end();
    else if (incoming.url === "/hang") return;
    else {
      let text = "";
      incoming.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      incoming.on("end", () => {
        outgoing.setHeader("content-type", "application/json");
        outgoing.end(
          JSON.stringify({ method: incoming.method, type: incoming.headers["content-type"], text }),
        );
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  base = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});

test("a server whose authority is given is trusted, any other is not", { timeout: 30_000 }, async () => {
  const trusting = createAuthorityFetch(made.own.cert);
  const answer = await trusting(`${base}/`, { method: "POST", body: new URLSearchParams({ a: "1 2" }) });
  assert.deepEqual(await answer.json(), {
    method: "POST",
    type: "application/x-www-form-urlencoded;charset=UTF-8",
    text: "a=1+2",
  });
  await assert.rejects(createAuthorityFetch(made.other.cert)(`${base}/`), TypeError);
  await assert.rejects(trusting("file:///etc/passwd"), TypeError);
});

test("redirects are handed back and not followed; an answer without a body has none", {
  timeout: 30_000,
}, async () => {
  const trusting = createAuthorityFetch(made.own.cert);
  const redirect = await trusting(`${base}/redirect`);
  assert.equal(redirect.status, 302);
  assert.equal(redirect.headers.get("location"), "/elsewhere");
  assert.equal((await trusting(`${base}/empty`)).body, null);
});

test("a signal ends a request that hangs", { timeout: 30_000 }, async () => {
  const controller = new AbortController();
  const hanging = createAuthorityFetch(made.own.cert)(`${base}/hang`, { signal: controller.signal });
  controller.abort();
  await assert.rejects(hanging);
});
