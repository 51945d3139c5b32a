// A FileServer as operators start it, in mock mode, and the load program that is signed in to it.
import { fileURLToPath } from "node:url";
import { metricsPortOf } from "#base/metrics-port.ts";
import { freeGrpcPorts } from "#testing/free-ports.ts";
import { type Json, type Program, profileFlags, type Service } from "./child.ts";
import { type Lab, numberOf } from "./lab.ts";
import { certificateFolder, type Security, securityEnv } from "./pair.ts";

/** The launcher of a clone. */
export const GROVE: string = fileURLToPath(new URL("../grove", import.meta.url));
/** The user whom every load program signs in as. */
export const OWNER = "bench@example.com";
/** The benchmark never fills the disk; the specified reserve would need 20 GiB free on every machine. */
const RESERVE = "1MiB";

/** A FileServer and a load program, each a process. */
export interface FileServerPair {
  readonly server: Service;
  readonly client: Program;
  readonly address: string;
  /** Gives the load program a task and returns the number that it answers. */
  measure(task: string, input: Json): Promise<number>;
}

/**
 * Starts `grove fileserver` on a folder and a load program that is signed in to it. With a profile's folder
 * each of its threads leaves a CPU profile there when it ends.
 */
export async function startFileServer(
  lab: Lab,
  folder: string,
  security: Security,
  flags: readonly string[] = [],
  profileFolder?: string,
): Promise<FileServerPair> {
  const [port = 0] = await freeGrpcPorts(1);
  const address = `127.0.0.1:${port}`;
  const profile =
    profileFolder === undefined
      ? profileFlags("fileserver").join(" ")
      : `--cpu-prof --cpu-prof-dir ${profileFolder}`;
  const server = await lab.service(
    [
      GROVE,
      "fileserver",
      "-data",
      folder,
      "-id",
      "fileserver",
      "-listen",
      address,
      "-reserve",
      RESERVE,
      "-log_level",
      "error",
      ...(await tlsFlags(lab, security)),
      ...flags,
    ],
    {
      env: { SVC_AUTH_MOCK: "1", ...(profile === "" ? {} : { NODE_OPTIONS: profile }) },
      isQuiet: true,
      isUp: () => answers(`http://127.0.0.1:${metricsPortOf(port)}/ready`),
    },
  );
  const client = lab.program("file-client", await securityEnv(lab, security));
  await client.run("connect", { address, owner: OWNER });
  return { server, client, address, measure: async (task, input) => numberOf(await client.run(task, input)) };
}

async function tlsFlags(lab: Lab, security: Security): Promise<string[]> {
  if (security === "plain") return [];
  const folder = await certificateFolder(lab);
  return [
    "-tls_cert",
    `${folder}/server.crt`,
    "-tls_key",
    `${folder}/server.key`,
    "-tls_ca",
    `${folder}/ca.crt`,
  ];
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
}
