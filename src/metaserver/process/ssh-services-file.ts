// Reads the file with the logs and start commands of a node's services, and prints the same as JSON.
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { GroveError } from "#base/errors.ts";
import { errorText } from "#base/log.ts";
import type { SshNode, SshService } from "#base/ssh-node.ts";

/** Maximum size of that file. */
const SSH_SERVICES_FILE_MAX_BYTES = 65_536;

const SERVICE = z.strictObject({
  log_file: z.string().optional(),
  argv: z.array(z.string()).optional(),
  cwd: z.string().optional(),
  env: z.record(z.string(), z.string()).optional(),
  pid_file: z.string().optional(),
});
const SERVICES = z.strictObject({
  fileserver: SERVICE.optional(),
  metaserver: SERVICE.optional(),
  admin: SERVICE.optional(),
});
type ServiceDocument = z.infer<typeof SERVICE>;

/** The file's content; its values are checked when the node is stored. Throws BAD_ARGUMENT. */
export async function readServices(path: string): Promise<SshNode["services"]> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    throw bad(`cannot read ${path}: ${errorText(error)}`);
  });
  if (text.length > SSH_SERVICES_FILE_MAX_BYTES) throw bad(`${path} is too long`);
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    throw bad(`${path} is no JSON`);
  }
  const parsed = SERVICES.safeParse(document);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw bad(`${path}: ${issue?.path.join(".") ?? ""}: ${issue?.message ?? "not understood"}`);
  }
  const named = Object.entries(parsed.data) as [keyof SshNode["services"], ServiceDocument][];
  return Object.fromEntries(named.map(([name, service]) => [name, fromDocument(service)]));
}

/** The printed form, which `-services` takes. */
export function servicesDocument(services: SshNode["services"]): Record<string, ServiceDocument> {
  return Object.fromEntries(Object.entries(services).map(([name, service]) => [name, toDocument(service)]));
}

function fromDocument({ log_file, argv, cwd, env, pid_file }: ServiceDocument): SshService {
  return {
    ...(log_file === undefined ? {} : { logFile: log_file }),
    ...(argv === undefined ? {} : { argv }),
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env }),
    ...(pid_file === undefined ? {} : { pidFile: pid_file }),
  };
}

function toDocument({ logFile, argv, cwd, env, pidFile }: SshService): ServiceDocument {
  return {
    ...(logFile === undefined ? {} : { log_file: logFile }),
    ...(argv === undefined ? {} : { argv: [...argv] }),
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env: { ...env } }),
    ...(pidFile === undefined ? {} : { pid_file: pidFile }),
  };
}

function bad(message: string): GroveError {
  return new GroveError("BAD_ARGUMENT", message);
}
