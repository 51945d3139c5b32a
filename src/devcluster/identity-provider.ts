// The process of the demonstration's provider; `grove up` passes its settings' path by environment.
import { once } from "node:events";
import { systemClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { run } from "#os/exit-signals.ts";
import { listenWithRetries } from "#os/listen-retry.ts";
import { createLogger } from "#os/logger.ts";
import { createDemoProvider } from "./demo-provider.ts";
import { readProviderSettings } from "./provider-settings.ts";

/** Environment variable with the path of the settings file. */
export const SETTINGS_VARIABLE = "GROVE_DEMO_IDP_SETTINGS";

/** Serves until a signal. */
export async function main(): Promise<void> {
  const path = process.env[SETTINGS_VARIABLE];
  if (path === undefined) throw new GroveError("BAD_ARGUMENT", `${SETTINGS_VARIABLE} is not set`);
  const log = createLogger({ destination: "stderr", fields: { role: "idp" } });
  await run(
    async () => {
      const settings = await readProviderSettings(path);
      const server = createDemoProvider({ settings, clock: systemClock, log });
      const listen = async (): Promise<void> => {
        server.listen(settings.port, "127.0.0.1");
        await once(server, "listening");
      };
      await listenWithRetries(
        { host: "127.0.0.1", port: settings.port },
        { listen, otherwise: "start again: 'grove up' then takes another" },
      );
      log.info("serving", { port: settings.port, users: settings.users.length });
      return {
        async stop(): Promise<void> {
          server.close();
          server.closeAllConnections();
          await once(server, "close");
        },
      };
    },
    { onEvent: (event, detail) => log.info(event, { detail }) },
  );
}

if (import.meta.main) await main();
