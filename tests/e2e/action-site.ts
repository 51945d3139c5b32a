// The setting for tests of actions: a metadata store, sshds, and a folder for the console.
import { join } from "node:path";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { SshServers } from "#testing/ssh-server.ts";
import type { ConsoleRequest } from "./action-console.ts";
import { type Endings, freePlace, startGrove, stopProgram } from "./processes.ts";

/** The site. */
export interface ActionSite {
  readonly folder: string;
  /** The address of its MetaServer. */
  readonly metaserver: string;
  readonly servers: SshServers;
  /** The start of a console there. */
  readonly consoleRequest: ConsoleRequest;
}

/** Starts a MetaServer with the nodes' store, and prepares for sshds; `endings` ends all of it. */
export async function openActionSite(endings: Endings): Promise<ActionSite> {
  const folder = scratchFolder("grove-e2e-");
  const servers = new SshServers();
  endings.after(() => servers.stop());
  const { address } = await freePlace();
  const meta = join(folder, "meta");
  const coordinator = startGrove(["metaserver", "-mock", "-data", meta, "-listen", address]);
  endings.after(() => stopProgram(coordinator, "SIGKILL"));
  await coordinator.says(/"event":"serving"/);
  const store = `sqlite:${join(meta, "metadata.db")}`;
  const consoleRequest = { data: join(folder, "admin"), store, keyFile: servers.keyFile };
  return { folder, metaserver: address, servers, consoleRequest };
}
