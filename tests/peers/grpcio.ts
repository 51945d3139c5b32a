// Finds a Python with grpcio, and serves EchoService with it.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { create, type DescFile, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { EchoService } from "#wire/framing/gen/echo_pb.ts";

/** The folder of the Python programs. */
export const pythonFolder: string = join(dirname(fileURLToPath(import.meta.url)), "..", "python");

/** A Python that can import grpc and protobuf, or undefined. */
export const findPython = (): string | undefined =>
  ["/usr/bin/python3", "python3"].find((python) => {
    try {
      execFileSync(python, ["-c", "import grpc, google.protobuf"], { stdio: "ignore", timeout: 20_000 });
      return true;
    } catch {
      return false;
    }
  });

/** EchoService on grpcio, in a process of its own. */
export interface PythonServer {
  readonly port: number;
  readonly cancelledCalls: () => number;
  close(): Promise<void>;
}

/** Starts it and waits for its port. */
export const servePython = async (python: string): Promise<PythonServer> => {
  const folder = mkdtempSync(join(tmpdir(), "grove-python-"));
  const descriptors = join(folder, "echo.binpb");
  const files: DescFile[] = [EchoService.file];
  const set = create(FileDescriptorSetSchema, { file: files.map(({ proto }) => proto) });
  writeFileSync(descriptors, toBinary(FileDescriptorSetSchema, set));
  const child = spawn(python, [join(pythonFolder, "echo_server.py"), descriptors], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  let cancelled = 0;
  const port = await new Promise<number>((resolve, reject) => {
    child.once("exit", () => reject(new Error("the Python server ended at once")));
    createInterface(child.stdout).on("line", (line) => {
      if (line === "cancelled") cancelled++;
      else resolve(Number(line));
    });
  });
  return {
    port,
    cancelledCalls: () => cancelled,
    async close() {
      child.stdin.end();
      const late = setTimeout(() => child.kill("SIGKILL"), 3_000);
      await exited;
      clearTimeout(late);
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
