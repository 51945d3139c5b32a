// A WebDAV client that costs little: puts, gets and lists at a door, or at another server of files.
import { Agent, type IncomingMessage, request } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { trustedAuthority } from "#bench/certificates.ts";
import { callsPerSecond, count, mibPerSecond, perSecond, pump } from "#bench/pump.ts";
import { serveTasks } from "#bench/tasks.ts";

const ca = trustedAuthority();
const agent = ca === undefined ? new Agent({ keepAlive: true }) : new HttpsAgent({ keepAlive: true, ca });
let base = "";
let authorization = "";

serveTasks(
  {
    connect: (input) => {
      ({ base, authorization } = input as { base: string; authorization: string });
      return null;
    },
    up: async (input) => {
      const { path, bytes } = input as { path: string; bytes: number };
      const start = performance.now();
      await ask("PUT", path, [200, 201, 204], bytes);
      return mibPerSecond(bytes, start);
    },
    down: async (input) => {
      const { path, bytes } = input as { path: string; bytes: number };
      const start = performance.now();
      const came = await ask("GET", path, [200]);
      // A server that knows no files is asked for 0.
      if (bytes > 0 && came !== bytes) throw new Error("other bytes came");
      return mibPerSecond(came, start);
    },
    makeFolder: async (path) => {
      await ask("MKCOL", String(path), [201]);
      return null;
    },
    remove: async (path) => {
      await ask("DELETE", String(path), [204]);
      return null;
    },
    // So many files of a folder, each put or got once.
    putMany: (input) => {
      const { folder, files, inFlight, bytes } = input as unknown as ManyFiles;
      return callsPerSecond(files, inFlight, (at) => ask("PUT", `${folder}/file-${at}`, [201, 204], bytes));
    },
    getMany: (input) => {
      const { folder, files, inFlight, bytes } = input as unknown as ManyFiles;
      return callsPerSecond(files, inFlight, async (at) => {
        if ((await ask("GET", `${folder}/file-${at}`, [200])) !== bytes) throw new Error("other bytes came");
      });
    },
    // Whole listings a second.
    list: async (input) => {
      const { folder, listings, entries } = input as { folder: string; listings: number; entries: number };
      const start = performance.now();
      for (let done = 0; done < listings; done++) {
        const bytes = await ask("PROPFIND", `${folder}/`, [207], 0, { depth: "1" });
        if (bytes < 100 * entries) throw new Error(`a listing of ${bytes} bytes came`);
      }
      return perSecond(listings, start);
    },
  },
  () => agent.destroy(),
);

interface ManyFiles {
  readonly folder: string;
  readonly files: number;
  readonly inFlight: number;
  readonly bytes: number;
}

/** Sends a request with so many bytes and returns the number of those that come back. */
async function ask(
  method: string,
  path: string,
  expected: readonly number[],
  bytes = 0,
  headers: Readonly<Record<string, string>> = {},
): Promise<number> {
  const sent = (ca === undefined ? request : httpsRequest)(`${base}${path}`, {
    method,
    agent,
    headers: { authorization, "content-length": bytes, ...headers },
  });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    sent.once("response", resolve).once("error", reject);
  });
  // The answer tells of what went wrong while bytes were on their way.
  if (bytes > 0) pump(sent, bytes).catch(() => undefined);
  else sent.end();
  const answer = await answered;
  const came = await count(answer);
  if (expected.includes(answer.statusCode ?? 0)) return came;
  throw new Error(`${method} ${path} was answered ${answer.statusCode ?? "nothing"}`);
}
