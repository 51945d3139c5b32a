// Tests Python's grpcio against the room's server, with only the reflected protocol.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { EchoService } from "#wire/framing/gen/echo_pb.ts";
import { echoHandlers } from "#wire/grpc/echo-service.ts";
import { HealthService } from "#wire/grpc/health.ts";
import { addReflection } from "#wire/grpc/reflection.ts";
import { GrpcServer } from "#wire/grpc/server.ts";
import { findPython, pythonFolder } from "./grpcio.ts";

const python = findPython();
const skip = python === undefined ? "needs python3-grpcio and python3-protobuf" : false;
const SCENARIOS = [
  "four_kinds",
  "metadata",
  "every_status",
  "deadline",
  "cancellation",
  "compression",
  "unimplemented",
  "limits",
  "files",
  "reflection",
  "health",
];

test("grpcio, knowing only what the server reflects, makes every kind of call and meets every error", {
  skip,
  timeout: 120_000,
}, async () => {
  const server = new GrpcServer();
  server.addService(EchoService, echoHandlers());
  new HealthService().addTo(server);
  addReflection(server, [EchoService]);
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  try {
    const { stdout } = await promisify(execFile)(
      python as string,
      [join(pythonFolder, "echo_client.py"), String(port)],
      { timeout: 55_000, env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" } },
    );
    assert.deepEqual(
      stdout.trim().split("\n"),
      SCENARIOS.map((name) => `passed ${name}`),
    );
  } finally {
    await server.close();
  }
});
