// Delivers messages to a webhook: signed, with a time limit, and without following redirects (decision D11).
import { createHmac } from "node:crypto";
import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Notice } from "./notification.ts";
import { type WebhookPayload, webhookPayload } from "./notification-payload.ts";
import type { QueuedNotification } from "./notification-queue.ts";
import type { NotificationSender, TryResult } from "./notification-sender.ts";
import type { WebhookSettings } from "./notification-settings.ts";

/** Bytes of a receiver's answer that are read at most; the content is ignored. */
const NOTIFICATION_ANSWER_MAX_BYTES = 65_536;

/** Statuses with which a receiver refuses this message; all others are temporary. */
const REFUSED: readonly number[] = [400, 413, 415, 422];

/** The signature that a receiver checks: HMAC-SHA-256 over the body as received. */
export function signatureOf(body: string, secret: string): string {
  return `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
}

/** Makes the sender of a webhook. consoleUrl appears in the payload; empty when unknown. */
export function createWebhookSender(settings: WebhookSettings, consoleUrl: string): NotificationSender {
  return webhookSenderOf(settings, (notice: Notice) => webhookPayload(notice, settings.name, consoleUrl));
}

/** Makes the sender of a webhook for messages of any kind, by the function that makes their bodies. */
export function webhookSenderOf<N>(
  settings: WebhookSettings,
  bodyOf: (notice: N) => WebhookPayload,
): NotificationSender<N> {
  return {
    async send(queued, signal) {
      const body = JSON.stringify(bodyOf(queued.notice));
      try {
        return resultOf(await post(settings, queued, body, signal));
      } catch (error) {
        return { kind: "failed", why: signal.aborted ? "no answer in time" : networkText(error) };
      }
    },
  };
}

function resultOf(status: number): TryResult {
  if (status >= 200 && status < 300) return { kind: "delivered" };
  const why = `it answered ${status}`;
  if (status >= 300 && status < 400) return { kind: "failed", why: `${why}; redirects are not followed` };
  return REFUSED.includes(status) ? { kind: "refused", why } : { kind: "failed", why };
}

async function post(
  settings: WebhookSettings,
  queued: Pick<QueuedNotification, "createdWallMs" | "seq">,
  body: string,
  signal: AbortSignal,
): Promise<number> {
  const { url, signingSecret, bearerToken, ca } = settings;
  const options = {
    method: "POST",
    signal,
    // A new connection for every try: tries are rare, and a kept one may be dead.
    agent: false as const,
    headers: {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      "user-agent": "grove",
      // The same for every try, so that a receiver recognises a repetition.
      "x-svc-notice": `${queued.createdWallMs}-${queued.seq}`,
      ...(signingSecret === undefined ? {} : { "x-svc-signature": signatureOf(body, signingSecret) }),
      ...(bearerToken === undefined ? {} : { authorization: `Bearer ${bearerToken}` }),
    },
  };
  const outgoing =
    url.protocol === "https:"
      ? httpsRequest(url, { ...options, ...(ca === undefined ? {} : { ca }) })
      : httpRequest(url, options);
  return await answerOf(outgoing, body);
}

/** The status, once the whole answer has arrived: a receiver that breaks off may have accepted nothing. */
function answerOf(outgoing: ClientRequest, body: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  outgoing.once("error", reject);
  outgoing.once("response", (incoming: IncomingMessage) => {
    let bytes = 0;
    incoming.on("data", (piece: Buffer) => {
      bytes += piece.length;
      if (bytes <= NOTIFICATION_ANSWER_MAX_BYTES) return;
      resolve(incoming.statusCode ?? 0);
      incoming.destroy();
    });
    incoming.once("end", () => resolve(incoming.statusCode ?? 0));
    incoming.once("error", reject);
  });
  outgoing.end(body);
  return promise;
}

/** Error codes of the system and of TLS; never the address, whose path may hold a secret. */
function networkText(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "it cannot be reached";
}
