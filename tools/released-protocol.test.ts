// Tests the comparison with the last release's protocol: growth passes, incompatible changes fail (D18).
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { brokenPromises, releasedImage } from "./released-protocol.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** The verdict on the protocol with one replaced text in file_server.proto. */
function after(from: string, to: string): string | undefined {
  const copy = mkdtempSync(join(tmpdir(), "grove-protocol-"));
  try {
    cpSync(join(ROOT, "proto"), join(copy, "proto"), { recursive: true });
    cpSync(join(ROOT, "buf.yaml"), join(copy, "buf.yaml"));
    const path = join(copy, "proto/grove/v1/file_server.proto");
    const text = readFileSync(path, "utf8");
    assert.ok(text.includes(from), from);
    writeFileSync(path, text.replace(from, to));
    return brokenPromises(copy);
  } finally {
    rmSync(copy, { recursive: true });
  }
}

test("there is an image of one release, with a version", () => {
  assert.match(releasedImage().version, /^\d+\.\d+\.\d+$/);
});

test("a new field and a new method are growth", () => {
  const rpc = "rpc Unshare(UnshareRequest) returns (UnshareResponse);";
  assert.equal(after(rpc, `${rpc}\n  rpc Again(UnshareRequest) returns (UnshareResponse);`), undefined);
  const message = "message ShareRequest {";
  assert.equal(after(message, `${message}\n  string note = 99;`), undefined);
});

test("a renumbered field, another type, another name, and a method that is gone are not", () => {
  const request = "message ShareRequest {\n  string root = 1;\n  string path = 2;\n  string user = 3;";
  assert.match(
    after(request, request.replace("3;", "4;")) ?? "",
    /"3" with name "user" on message "ShareRequest" was deleted/,
  );
  assert.match(after(request, request.replace("string user", "bytes user")) ?? "", /changed type/);
  assert.match(after(request, request.replace("user", "username")) ?? "", /changed name/);
  assert.match(
    after("  rpc Share(ShareRequest) returns (ShareResponse);\n", "") ?? "",
    /RPC "Share".*deleted/,
  );
});
