// The other side of the shared engine's rows: bare PUTs of the same objects, and a bare driver of batches.
import { createHash, createHmac } from "node:crypto";
import { Agent, request } from "node:http";
import pg from "pg";
import { callsPerSecond, mibPerSecond } from "#bench/pump.ts";
import { serveTasks } from "#bench/tasks.ts";
import { crc32 } from "#os/crc32.ts";

/** Rows that one call takes, as many as the engine's own groups can have with so many calls in flight. */
const ROWS_AT_ONCE = 64;
const REGION = "us-east-1";

/** A root's counter, its inodes and the bytes of small files, and one call that takes a group of them. */
const MAKE = `
  CREATE SCHEMA bare;
  SET search_path TO bare;
  CREATE TABLE root (number BIGINT PRIMARY KEY, epoch BIGINT NOT NULL, batch BIGINT NOT NULL, live_bytes BIGINT NOT NULL)
    WITH (fillfactor = 50);
  INSERT INTO root VALUES (1, 1, 0, 0);
  CREATE TABLE inode (id BIGINT PRIMARY KEY, parent_id BIGINT NOT NULL, name TEXT COLLATE "C" NOT NULL,
    size BIGINT NOT NULL, crc32 BIGINT NOT NULL, mtime_ms BIGINT NOT NULL, UNIQUE (parent_id, name));
  CREATE TABLE content (inode_id BIGINT PRIMARY KEY, data BYTEA NOT NULL);
  CREATE FUNCTION take_group(p_batch BIGINT, p_parent BIGINT, p_ids BIGINT[], p_names TEXT[], p_crcs BIGINT[], p_data BYTEA[])
  RETURNS VOID LANGUAGE plpgsql AS $$ BEGIN
    UPDATE root SET batch = p_batch, live_bytes = live_bytes + (SELECT sum(length(d)) FROM unnest(p_data) d)
      WHERE number = 1 AND epoch = 1 AND batch = p_batch - 1;
    IF NOT FOUND THEN RAISE EXCEPTION 'another batch came between'; END IF;
    INSERT INTO inode SELECT n.id, p_parent, n.name, length(n.data), n.crc, 0
      FROM unnest(p_ids, p_names, p_crcs, p_data) AS n (id, name, crc, data);
    INSERT INTO content SELECT * FROM unnest(p_ids, p_data);
  END $$;`;

interface StorePlace {
  readonly port: number;
  readonly bucket: string;
  readonly keyId: string;
  readonly secret: string;
}

let database: pg.Client | undefined;
let batch = 0;
let lastId = 0;
let store: StorePlace | undefined;
let objects = 0;
let agent = new Agent({ keepAlive: true });

serveTasks(
  {
    connect: async (input) => {
      const { url, ...place } = input as unknown as StorePlace & { url: string };
      store = place;
      database = new pg.Client({ connectionString: url });
      await database.connect();
      await database.query(MAKE);
      return null;
    },
    // Files in groups, one group after the other, as the epoch's guard demands.
    create: async (input) => {
      const { files, bytes } = input as { files: number; bytes: number };
      const data = Buffer.alloc(bytes, 0xa5);
      const parent = ++lastId;
      const rate = await callsPerSecond(Math.ceil(files / ROWS_AT_ONCE), 1, async () => {
        const ids = Array.from({ length: ROWS_AT_ONCE }, () => ++lastId);
        const names = ids.map((id) => `file-${id}`);
        const crcs = ids.map(() => crc32(data));
        const group = [++batch, parent, ids, names, crcs, ids.map(() => data)];
        await database?.query("SELECT bare.take_group($1, $2, $3, $4, $5, $6)", group);
      });
      return rate * ROWS_AT_ONCE;
    },
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
    await database?.end();
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
