// Runs litmus against a tree behind WebDAV's methods.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { silentLogger } from "#base/log.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { answerDav } from "./methods.ts";
import { type PartsOutlet, writeGathered } from "./outlet.ts";
import type { DavTree } from "./resource.ts";

/** Options of a test that needs litmus. */
export const WITH_LITMUS: { readonly skip: false | string } = {
  skip: spawnSync("litmus", ["--version"]).status === 0 ? false : "litmus is not installed",
};

/** Serves a tree at /dav/ on a free port of this machine; resolves with that address. */
export async function serveTree(t: Pick<TestContext, "after">, tree: DavTree): Promise<string> {
  const hosts = new Set<string>();
  const answer =
    (awaitsContinue: boolean) =>
    (request: IncomingMessage, response: ServerResponse): void =>
      void answerDav(request, withGathering(response), {
        tree,
        place: { prefix: "/dav", hosts },
        awaitsContinue,
        log: silentLogger,
      });
  const server = createServer(answer(false)).on("checkContinue", answer(true));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  hosts.add(`127.0.0.1:${port}`);
  return `http://127.0.0.1:${port}/dav/`;
}

function withGathering(response: ServerResponse): ServerResponse & Pick<PartsOutlet, "writeAll"> {
  return Object.assign(response, {
    writeAll: (parts: readonly Uint8Array[]): boolean => writeGathered(response, parts),
  });
}

/** Runs all of litmus: every test has to pass, without a warning. */
export async function passLitmus(address: string): Promise<void> {
  const litmus = spawn("litmus", ["-k", address], { cwd: scratchFolder("litmus") });
  let output = "";
  for await (const part of litmus.stdout) output += String(part);
  const passed = [...output.matchAll(/: of (\d+) tests run: (\d+) passed, 0 failed/gu)];
  assert.equal(
    passed.reduce((sum, [, , count]) => sum + Number(count), 0),
    104,
    output,
  );
  assert.doesNotMatch(output, /skipped|WARNING/u);
}
