// What tests of actions on real machines share: an sshd for the tests of one file, and connections to it.
import { after, before } from "node:test";
import { systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { type SshServer, SshServers, withoutSshServer } from "#testing/ssh-server.ts";
import { SshConnections } from "./ssh-command.ts";

/** The machine, and the way to it. */
export interface SshSite {
  readonly servers: SshServers;
  readonly server: SshServer;
  readonly connections: SshConnections;
}

/** Starts them before the tests of the calling file and ends them afterwards; returns why they are skipped, or false. */
export function sshOfFile(onStart: (site: SshSite) => void): string | false {
  const skip = withoutSshServer();
  const ends = new AsyncDisposableStack();
  before(async () => {
    if (skip !== false) return;
    const servers = new SshServers();
    ends.defer(() => servers.stop());
    const server = await servers.start();
    const { keyFile } = servers;
    const connections = new SshConnections({ clock: systemClock, log: silentLogger, keyFile });
    ends.defer(() => connections.close());
    onStart({ servers, server, connections });
  });
  after(() => ends.disposeAsync());
  return skip;
}
