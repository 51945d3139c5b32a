// A client that is signed in at a FileServer process of its own, for the tests of a file.
import assert from "node:assert/strict";
import { freeGrpcPorts } from "#testing/free-ports.ts";
import { makeTestClient, type TestClient } from "./client.fixture.ts";
import { type ServerProcess, startFileServer } from "./server-processes.fixture.ts";

/** The client, and its server with its port. */
export interface SignedInClient {
  readonly client: TestClient;
  readonly server: ServerProcess;
  readonly port: number;
}

/** Starts the server with its data in the client's folder, and signs in there. The caller ends both. */
export async function signedInClient(email = "alice@example.com"): Promise<SignedInClient> {
  const client = await makeTestClient();
  const [port = 0] = await freeGrpcPorts(1);
  const server = await startFileServer(client.folder, port);
  const words = ["--mock", email, "--fileserver", server.address];
  const login = await client.run(import("./login-command.ts"), words);
  if (login.code !== 0) {
    await server.kill("SIGKILL");
    assert.fail(login.err);
  }
  return { client, server, port };
}
