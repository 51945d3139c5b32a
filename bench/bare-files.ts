// A server on bare node:http2 that stores and sends files, with the client that sends it the same bytes as ours.
import { join } from "node:path";
import type { Program } from "./child.ts";
import type { Lab } from "./lab.ts";
import { type Security, securityEnv } from "./pair.ts";

/** Its words in a table. */
export const BARE = "bare node:http2 with CRC-32 and files of 4,000,000 bytes";

/** Two connected processes; the server's files lie on a tmpfs. */
export interface BareFiles {
  readonly pid: number;
  readonly address: string;
  readonly folder: string;
  readonly server: Program;
  readonly client: Program;
}

/** Starts them once per group. */
export function bareFiles(lab: Lab, security: Security): Promise<BareFiles> {
  return lab.once(`bare files ${security}`, async () => {
    const env = await securityEnv(lab, security);
    const folder = join(await lab.folder("memory"), "files");
    const server = lab.program("bare-files-server", env);
    const client = lab.program("transfer-client", env);
    const address = `127.0.0.1:${String(await server.run("listen", folder))}`;
    await client.run("connect", { address, owner: "" });
    return { pid: server.pid, address, folder, server, client };
  });
}
