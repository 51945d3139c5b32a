// WebDAV servers of other people, each on a tmpfs with a client of its own.
import { freePort } from "#testing/free-ports.ts";
import type { Program } from "./child.ts";
import { inPath, listens } from "./installed.ts";
import type { Lab } from "./lab.ts";
import { startNginx } from "./nginx.ts";
import { type Security, securityEnv } from "./pair.ts";

/** A WebDAV server of other people. */
export interface DavPeer {
  readonly name: string;
  /** Starts it and resolves with a client. Throws where it is not installed. */
  start(lab: Lab, security: Security): Promise<Program>;
}

/** It has no users, quotas or checksums. */
export const RCLONE: DavPeer = {
  name: "rclone serve webdav, which flushes nothing",
  async start(lab) {
    const program = inPath("rclone");
    const folder = await lab.folder("memory");
    const port = await freePort();
    const address = `127.0.0.1:${port}`;
    await lab.service([program, "serve", "webdav", folder, "--addr", address, "--user", "a", "--pass", "b"], {
      isQuiet: true,
      isUp: () => listens(port),
    });
    const dav = lab.program("dav-client");
    const authorization = `Basic ${Buffer.from("a:b").toString("base64")}`;
    await dav.run("connect", { base: `http://${address}`, authorization });
    return dav;
  },
};

/** The same. */
export const NGINX: DavPeer = {
  name: "nginx WebDAV, which knows no users and flushes nothing",
  async start(lab, security) {
    const { port } = await startNginx(lab, security);
    const dav = lab.program("dav-client", await securityEnv(lab, security));
    const base = `${security === "plain" ? "http" : "https"}://127.0.0.1:${port}`;
    await dav.run("connect", { base, authorization: "" });
    return dav;
  },
};
