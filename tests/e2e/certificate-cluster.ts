// A MetaServer with an authority, and nodes that joined it with tokens, set up by an operator's commands.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { operatorHere } from "./operator-here.ts";
import { freePlace, type Place, type Program, startGrove, stopProgram } from "./processes.ts";

/** The test that it belongs to. */
interface Owner {
  after(hook: () => Promise<unknown>): void;
}

/** A cluster of processes. */
export interface CertificateCluster {
  readonly folder: string;
  readonly caDir: string;
  readonly caPem: string;
  readonly metaserver: Place & Program;
  /** Makes a token, joins with it, starts the node and waits until it serves. */
  addNode(id: string, flags?: readonly string[]): Promise<Place & Program & { readonly data: string }>;
}

/** Runs `grove`, an operator's command in this process. Throws on failure, and returns its standard output. */
export async function groveOk(words: readonly string[], input?: string): Promise<string> {
  const { code, stdout, stderr } = await operatorHere(words, input === undefined ? {} : { input });
  if (code !== 0) throw new Error(`grove ${words.join(" ")} ended with ${code}: ${stderr}`);
  return stdout;
}

/** Makes the authority and starts the MetaServer. certDays is the life of every certificate. */
export async function startCertificateCluster(
  t: Owner,
  folder: string,
  certDays: number,
): Promise<CertificateCluster> {
  const caDir = join(folder, "ca");
  await groveOk(["ca", "init", "-ca_dir", caDir]);
  const place = await freePlace();
  const data = join(folder, "meta");
  const program = startGrove([
    "metaserver",
    "-data",
    data,
    "-ca_dir",
    caDir,
    "-cert_days",
    String(certDays),
    "-listen",
    place.address,
  ]);
  t.after(() => stopProgram(program, "SIGKILL"));
  await program.says(/"event":"serving"/);
  return {
    folder,
    caDir,
    caPem: await readFile(join(caDir, "ca.crt"), "utf8"),
    metaserver: { ...program, ...place },
    async addNode(id, flags = []) {
      const data = join(folder, id);
      const node = await freePlace();
      const tokenFile = join(folder, `${id}.token`);
      await writeFile(tokenFile, await groveOk(["node", "token", "-ca_dir", caDir, "-id", id]), {
        mode: 0o600,
      });
      const target = ["-metaserver", `localhost:${place.port}`, "-data", data, "-advertise", node.address];
      await groveOk(["node", "join", ...target, "-token_file", tokenFile]);
      const started = startGrove(
        ["fileserver", "-data", data, "-listen", node.address, "-reserve", "1MiB", "-mock", ...flags],
        { env: { SVC_AUTH_MOCK: "1" } },
      );
      t.after(() => stopProgram(started, "SIGKILL"));
      await started.says(/: serves .* on /);
      return { ...started, ...node, data };
    },
  };
}
