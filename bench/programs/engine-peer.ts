// The other side of the shared engine's rows: bare PUTs of the same objects, and a bare driver of batches.
import { createHash, createHmac } from "node:crypto";
import { Agent, request } from "node:http";
import { BareGroups } from "#bench/bare-groups.ts";
import { callsPerSecond, mibPerSecond } from "#bench/pump.ts";
import { TakenTimes } from "#bench/taken-times.ts";
import { serveTasks } from "#bench/tasks.ts";
import { crc32 } from "#os/crc32.ts";

const REGION = "us-east-1";

interface StorePlace {
  readonly port: number;
  readonly bucket: string;
  readonly keyId: string;
  readonly secret: string;
}

let groups: BareGroups | undefined;
let times = new TakenTimes();
let store: StorePlace | undefined;
let objects = 0;
let agent = new Agent({ keepAlive: true });

serveTasks(
  {
    connect: async (input) => {
      const { url, ...place } = input as unknown as StorePlace & { url: string };
      store = place;
      groups = await BareGroups.open(url, "bare");
      return null;
    },
    // Files in groups, one group after the other; answers the rate of files.
    create: async (input) => {
      const { files, bytes, atOnce } = input as { files: number; bytes: number; atOnce: number };
      const group = Array.from({ length: atOnce }, () => Buffer.alloc(bytes, 0xa5));
      times = new TakenTimes();
      groups?.newFolder();
      const take = async (): Promise<void> => groups?.take(group);
      return atOnce * (await callsPerSecond(Math.ceil(files / atOnce), 1, () => times.of(take)));
    },
    slowest: () => times.p99Ms,
    // Objects with a checksum that is made anew for each, some at once.
    put: async (input) => {
      const { count, bytes, inFlight } = input as { count: number; bytes: number; inFlight: number };
      agent.destroy();
      agent = new Agent({ keepAlive: true, maxSockets: inFlight });
      const body = Buffer.alloc(bytes, 0xa5);
      const start = performance.now();
      await callsPerSecond(count, inFlight, () => put(`bare/${process.pid}/${++objects}`, body));
      return mibPerSecond(count * bytes, start);
    },
  },
  async () => {
    agent.destroy();
    await groups?.close();
  },
);

function put(key: string, body: Buffer): Promise<void> {
  const { port, bucket } = store as StorePlace;
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(body));
  const headers = signed(`/${bucket}/${key}`, {
    host: `127.0.0.1:${port}`,
    "x-amz-checksum-crc32": checksum.toString("base64"),
  });
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        agent,
        host: "127.0.0.1",
        port,
        method: "PUT",
        path: `/${bucket}/${key}`,
        headers: { ...headers, "content-length": body.length },
      },
      (answer) => {
        answer.resume().once("end", () => {
          if (answer.statusCode === 200) resolve();
          else reject(new Error(`the store answered ${answer.statusCode}`));
        });
      },
    );
    asked.once("error", reject).end(body);
  });
}

/** Signature version 4, without the body, whose checksum is signed. */
function signed(path: string, given: Readonly<Record<string, string>>): Record<string, string> {
  const { keyId, secret } = store as StorePlace;
  const time = new Date().toISOString().replaceAll(/[-:]|\.\d{3}/g, "");
  const day = time.slice(0, 8);
  const headers: Record<string, string> = {
    ...given,
    "x-amz-content-sha256": "UNSIGNED-PAYLOAD",
    "x-amz-date": time,
  };
  const names = Object.keys(headers).toSorted();
  const canonical = [
    "PUT",
    path,
    "",
    ...names.map((name) => `${name}:${headers[name]}`),
    "",
    names.join(";"),
    "UNSIGNED-PAYLOAD",
  ].join("\n");
  const scope = `${day}/${REGION}/s3/aws4_request`;
  const hash = createHash("sha256").update(canonical).digest("hex");
  const mac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();
  const key = [day, REGION, "s3", "aws4_request"].reduce<string | Buffer>(mac, `AWS4${secret}`);
  const signature = mac(key, ["AWS4-HMAC-SHA256", time, scope, hash].join("\n")).toString("hex");
  const credential = `Credential=${keyId}/${scope}`;
  return {
    ...headers,
    authorization: `AWS4-HMAC-SHA256 ${credential},SignedHeaders=${names.join(";")},Signature=${signature}`,
  };
}
