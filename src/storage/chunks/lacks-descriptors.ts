// Tells a want of file descriptors from other failures: it passes, and says nothing of the file.

/** True where the process or the machine had no descriptor left for a file. */
export function lacksDescriptors(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "EMFILE" || code === "ENFILE";
}
