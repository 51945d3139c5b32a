// Durable small files without a network: temporary file, fsync, rename, fsync of the folder.
import { close, closeSync, fsync, mkdirSync, open, openSync, rename, write } from "node:fs";
import { join } from "node:path";
import { callsPerSecond } from "#bench/pump.ts";
import { serveTasks } from "#bench/tasks.ts";

// Callbacks, since they cost less than the promises of node:fs; the thread pool has Node's default size.
serveTasks(
  {
    create: async (input) => {
      const { folder, files, inFlight, bytes } = input as {
        folder: string;
        files: number;
        inFlight: number;
        bytes: number;
      };
      mkdirSync(folder);
      const directory = openSync(folder, "r");
      const content = Buffer.alloc(bytes, 0xa5);
      try {
        return await callsPerSecond(files, inFlight, (at) =>
          create(directory, join(folder, `file-${at}`), content),
        );
      } finally {
        closeSync(directory);
      }
    },
  },
  () => undefined,
);

function create(directory: number, path: string, content: Buffer): Promise<void> {
  const temporary = `${path}.tmp`;
  return new Promise((resolve, reject) => {
    const then =
      <T>(next: (value: T) => void) =>
      (error: Error | null, value?: T): void => {
        if (error === null) next(value as T);
        else reject(error);
      };
    open(
      temporary,
      "wx",
      then<number>((file) =>
        write(
          file,
          content,
          0,
          content.length,
          0,
          then(() =>
            fsync(
              file,
              then(() =>
                close(
                  file,
                  then(() =>
                    rename(
                      temporary,
                      path,
                      then(() =>
                        fsync(
                          directory,
                          then(() => resolve()),
                        ),
                      ),
                    ),
                  ),
                ),
              ),
            ),
          ),
        ),
      ),
    );
  });
}
