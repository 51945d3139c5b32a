// What a bucket must do before a server writes chunks there, tried on an object of its own.
import { GroveError } from "#base/errors.ts";
import type { Random } from "#base/random.ts";
import { crc32 } from "#os/crc32.ts";
import { bytesBody } from "./s3-client.ts";
import { isStoreProblem } from "./store-error.ts";
import type { StoreRequests } from "./store-requests.ts";

const PROBE_BYTES = 4_096;

/** What was found of a bucket that may be used. */
export interface BucketFacts {
  /** True when the store refuses a second object of one name, which `putNew` asks for. */
  readonly keepsFirst: boolean;
  /** True when the store refuses bytes that do not match their checksum. */
  readonly checksBytes: boolean;
}

/**
 * Tries a bucket. Throws BAD_ARGUMENT for one with versions, where removed chunks would stay, and for one
 * that gives other bytes than it got.
 */
export async function checkBucket(
  requests: StoreRequests,
  prefix: string,
  random: Random,
): Promise<BucketFacts> {
  const { client } = requests;
  const versioning = await requests.retried("GetBucketVersioning", () => client.versioning());
  if (versioning !== "") {
    throw new GroveError(
      "BAD_ARGUMENT",
      "the bucket keeps versions, so that removed chunks would stay: use one that never had versioning on",
    );
  }
  const key = `${prefix}probe/${random.bytes(16).toString("hex")}`;
  const bytes = random.bytes(PROBE_BYTES);
  const body = bytesBody([bytes], bytes.length);
  const crc = crc32(bytes);
  try {
    const checksBytes = await isRefused(client.put(key, body, (crc ^ 1) >>> 0, false));
    await requests.retried("PUT", () => client.put(key, body, crc, false));
    const keepsFirst = await isRefused(client.put(key, body, crc, true));
    const [whole, part] = [
      await requests.getRange(key, 0, bytes.length),
      await requests.getRange(key, 100, 50),
    ];
    if (!whole.equals(bytes) || !part.equals(bytes.subarray(100, 150))) {
      throw new GroveError("BAD_ARGUMENT", "the bucket gives other bytes than it was given");
    }
    return { keepsFirst, checksBytes };
  } finally {
    await client.delete(key).catch(() => undefined);
  }
}

/** True when the store refused by a rule; an answer that did not come is an error. */
async function isRefused(request: Promise<void>): Promise<boolean> {
  try {
    await request;
    return false;
  } catch (error) {
    if (isStoreProblem(error, "taken", "damaged", "refused")) return true;
    throw error;
  }
}
