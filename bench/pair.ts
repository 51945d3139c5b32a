// A server and its client, each a process, connected: the form of every peer measured over a socket.

import { makeCertificates, TLS_FOLDER } from "./certificates.ts";
import type { Json, Program } from "./child.ts";
import { type Lab, numberOf } from "./lab.ts";

/** The connection's encryption. */
export type Security = "plain" | "TLS";

/** Two connected processes. */
export interface Pair {
  readonly server: Program;
  readonly client: Program;
  /** Gives the client a task and returns the number that it answers. */
  measure(task: string, input: Json): Promise<number>;
}

/** Starts bench/programs/`peer`-server.ts and -client.ts once per group. */
export function connectedPair(lab: Lab, peer: string, security: Security): Promise<Pair> {
  return lab.once(`${peer} ${security}`, async () => {
    const env = await securityEnv(lab, security);
    const server = lab.program(`${peer}-server`, env);
    const client = lab.program(`${peer}-client`, env);
    await client.run("connect", await server.run("listen"));
    return { server, client, measure: async (task, input) => numberOf(await client.run(task, input)) };
  });
}

/** The environment that sets a program's encryption. */
export async function securityEnv(lab: Lab, security: Security): Promise<Record<string, string>> {
  return { [TLS_FOLDER]: security === "plain" ? "" : await certificateFolder(lab) };
}

/** The group's certificates: ca.crt, server.crt, server.key. */
export function certificateFolder(lab: Lab): Promise<string> {
  return lab.once("certificates", async () => {
    const folder = await lab.folder("disk");
    makeCertificates(folder);
    return folder;
  });
}
