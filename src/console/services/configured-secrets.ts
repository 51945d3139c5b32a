// The configured secrets that no output, record or log of an action may show (decision D7, C-13).
import type { ReceiverSettings } from "#console/alerts/notification-settings.ts";
import type { ConsoleOptions } from "./console-options.ts";

/** All current secrets; the operators' password may change. */
export function configuredSecrets({
  metricsToken,
  password,
  notices,
  storePassword,
}: ConsoleOptions): string[] {
  const receivers = notices?.receivers ?? [];
  const all = [metricsToken, storePassword, ...password.secrets, ...receivers.flatMap(secretsOf)];
  return all.filter((secret) => secret !== undefined);
}

function secretsOf(receiver: ReceiverSettings): (string | undefined)[] {
  return receiver.kind === "email" ? [receiver.password] : [receiver.signingSecret, receiver.bearerToken];
}
