// Has a running console take new files of its certificate, and of its password on SIGHUP.
import { errorText, type Logger } from "#base/log.ts";
import type { RunningConsole } from "./console.ts";
import type { OwnCertificate } from "./own-certificate.ts";

/** Follows both, and returns the function that ends this and stops the console. */
export function followFiles(
  console: RunningConsole,
  certificate: OwnCertificate | undefined,
  log: Logger,
): () => Promise<void> {
  const onHangup = (): void => {
    log.info("reload");
    void certificate?.reload();
    void console.reload().catch((error: unknown) => log.error("reload_failed", { error: errorText(error) }));
  };
  certificate?.onChange((pair) => console.useCertificate(pair));
  // It may have changed while the console started.
  if (certificate !== undefined) console.useCertificate(certificate.current);
  process.on("SIGHUP", onHangup);
  return async () => {
    process.off("SIGHUP", onHangup);
    await certificate?.close();
    await console.stop();
  };
}
