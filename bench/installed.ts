// Other people's programs: where they are, and whether they listen.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";

/** Throws where there is no such file. */
export function mustBeThere(path: string): void {
  if (!existsSync(path)) throw new Error(`${path} is not installed`);
}

/** The path of a program. Throws where it is not installed. */
export function inPath(name: string): string {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin"];
  const found = folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
  if (found === undefined) throw new Error(`${name} is not installed`);
  return found;
}

/** True once a port of this machine takes connections. */
export function listens(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(port, "127.0.0.1");
  socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
  return promise.finally(() => socket.destroy());
}

/** MiB a second of a download by `curl`, from the start of the command to its end. Throws for another length. */
export async function fetchedByCurl(url: string, authorization: string, bytes: number): Promise<number> {
  const words = ["--silent", "--show-error", "--fail", "--output", "/dev/null", "--config", "-"];
  const begunMs = performance.now();
  const curl = spawn(inPath("curl"), [...words, "--write-out", "%{size_download}", url], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  curl.stdin.end(`header = "authorization: ${authorization}"\n`);
  const [came] = await Promise.all([text(curl.stdout), once(curl, "exit")]);
  if (came !== String(bytes)) throw new Error(`curl got ${came} bytes`);
  return (bytes / 2 ** 20 / (performance.now() - begunMs)) * 1_000;
}
