// Tests of which failures show their request's id: unexpected ones always, others on demand.
import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { GroveError } from "#base/errors.ts";
import { REQUEST_ID_HEADER } from "#base/request-scope.ts";
import type { Terminal } from "#client/terminal/terminal.ts";
import { Metadata } from "#wire/framing/metadata.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { report } from "./command-host.ts";
import { refusalOf } from "./refusal.ts";

/** The output of a verb for a failed call. */
async function told(error: StatusError, flags: { verbose?: boolean; json?: boolean } = {}): Promise<string> {
  const stream = new PassThrough();
  const terminal = { error: stream, env: {} } as unknown as Terminal;
  report("ls", await refusalOf(error, "n1:50051"), terminal, flags);
  return String(stream.read());
}

const failure = (code: Code, reason?: string): StatusError =>
  new StatusError(code, "what the server said", {
    metadata: new Metadata({
      [REQUEST_ID_HEADER]: "0b7t2m9x4q1za-1",
      ...(reason === undefined ? {} : { "svc-reason": reason }),
    }),
  });

test("an unexpected failure names its request, so that an operator finds it in the log", async () => {
  for (const error of [
    failure(Code.UNKNOWN),
    failure(Code.INTERNAL, "INTERNAL"),
    failure(Code.UNAVAILABLE, "STORAGE_FAILED"),
  ]) {
    assert.match(await told(error), /\(Request 0b7t2m9x4q1za-1\.\)\n$/);
  }
});

test("a refusal that explains itself does not, unless --verbose or --json asks for it", async () => {
  const missing = failure(Code.NOT_FOUND, "NO_SUCH_PATH");
  assert.doesNotMatch(await told(missing), /Request/);
  assert.match(await told(missing, { verbose: true }), /\(Request 0b7t2m9x4q1za-1\.\)/);
  const json = JSON.parse(await told(missing, { json: true })) as {
    error: { metadata: Record<string, string> };
  };
  assert.equal(json.error.metadata["request_id"], "0b7t2m9x4q1za-1");
});

test("what failed before a server saw it has no id to tell", async () => {
  const stream = new PassThrough();
  report("ls", new GroveError("INTERNAL", "here"), { error: stream, env: {} } as unknown as Terminal, {
    verbose: true,
  });
  assert.doesNotMatch(String(stream.read()), /Request/);
});
