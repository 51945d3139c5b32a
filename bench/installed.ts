// Other people's programs: where they are, and whether they listen.
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { delimiter, join } from "node:path";

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
