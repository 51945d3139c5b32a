// Tests all of a FileServer's uses from Python's grpcio with only the reflected protocol.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { startNode, startProgram, stopProgram } from "./processes.ts";

const CLIENT = fileURLToPath(new URL("foreign_client.py", import.meta.url));
const SCENARIOS = [
  "discovery",
  "health",
  "transfers",
  "message_sizes",
  "quota_with_known_size",
  "quota_with_unknown_size",
  "setting_quotas",
  "deadlines",
  "cancellation",
  "errors",
  "sign_out",
];

const python = ["/usr/bin/python3", "python3"].find((name) => {
  try {
    execFileSync(name, ["-c", "import grpc, google.protobuf"], { stdio: "ignore", timeout: 20_000 });
    return true;
  } catch {
    return false;
  }
});

test("grpcio registers, moves 100 MB both ways, meets the quota at the right byte, and finds sizes as they were (spec 3.5, 4.6)", {
  timeout: 120_000,
  skip: python === undefined ? "needs python3-grpcio and python3-protobuf" : false,
}, async (t) => {
  const data = scratchFolder("grove-e2e-");
  const node = await startNode({
    data,
    env: {
      SVC_AUTH_MOCK: "1",
      SVC_ADMIN_EMAIL: "admin@example.com",
      ADMIN_PASSWORD: "correct horse battery staple",
    },
  });
  t.after(() => stopProgram(node, "SIGKILL"));
  const client = startProgram(python ?? "", [CLIENT, node.address], {
    env: { PYTHONDONTWRITEBYTECODE: "1" },
  });
  t.after(() => stopProgram(client, "SIGKILL"));
  const { code, stdout, stderr } = await client.ended;
  assert.equal(code, 0, stderr + stdout);
  assert.deepEqual(
    stdout.trim().split("\n"),
    SCENARIOS.map((name) => `passed ${name}`),
  );
});
