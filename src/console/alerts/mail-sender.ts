// Delivers notifications as mail through one SMTP server (decision D11).
import type { SendMailOptions, Transporter } from "nodemailer";
import type { Notice } from "./notification.ts";
import { type MailText, mailText } from "./notification-payload.ts";
import {
  NOTIFICATION_TRY_TIMEOUT_MS,
  type NotificationSender,
  type TryResult,
} from "./notification-sender.ts";
import type { EmailSettings } from "./notification-settings.ts";

/** Makes the sender of a mailbox. consoleUrl appears in the text; empty when unknown. */
export function createMailSender(settings: EmailSettings, consoleUrl: string): NotificationSender {
  return mailSenderOf(settings, (notice: Notice) => mailText(notice, consoleUrl));
}

/** Makes the sender of a mailbox for messages of any kind, by the function that words them. */
export function mailSenderOf<N>(
  settings: EmailSettings,
  wordsOf: (notice: N) => MailText,
): NotificationSender<N> {
  return {
    async send(queued, signal) {
      const { subject, text } = wordsOf(queued.notice);
      const domain = settings.from.slice(settings.from.lastIndexOf("@") + 1);
      const to = queued.to === undefined ? [...settings.to] : [queued.to];
      return await deliver(
        settings,
        {
          from: settings.from,
          // Parsed addresses, so that no part of one is read as a second address.
          to: to.map((address) => ({ name: "", address })),
          subject,
          text,
          // The same for every try, so that mailboxes recognise a repetition.
          messageId: `<${queued.createdWallMs}-${queued.seq}.grove@${domain}>`,
          date: new Date(queued.createdWallMs),
          headers: { "Auto-Submitted": "auto-generated" },
          disableFileAccess: true,
          disableUrlAccess: true,
        },
        signal,
      );
    },
  };
}

async function deliver(
  settings: EmailSettings,
  mail: SendMailOptions,
  signal: AbortSignal,
): Promise<TryResult> {
  const transport = await openTransport(settings);
  const aborted = Promise.withResolvers<TryResult>();
  const onAbort = (): void => {
    aborted.resolve({ kind: "failed", why: "no answer in time" });
    transport.close();
  };
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const sent = transport.sendMail(mail).then(
      (): TryResult => ({ kind: "delivered" }),
      (error: unknown) => resultOf(error),
    );
    return await Promise.race([sent, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
    transport.close();
  }
}

/** Loaded with the first mail, because most consoles never send one. */
async function openTransport(settings: EmailSettings): Promise<Transporter> {
  const { createTransport } = await import("nodemailer");
  const { host, port, security, username, password, ca } = settings;
  return createTransport({
    host,
    port,
    secure: security === "tls",
    requireTLS: security === "starttls",
    ignoreTLS: security === "none",
    ...(username === undefined || password === undefined ? {} : { auth: { user: username, pass: password } }),
    tls: { minVersion: "TLSv1.2", ...(ca === undefined ? {} : { ca }) },
    connectionTimeout: NOTIFICATION_TRY_TIMEOUT_MS,
    greetingTimeout: NOTIFICATION_TRY_TIMEOUT_MS,
    socketTimeout: NOTIFICATION_TRY_TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
}

/** Only the status code and the kind of error are passed on, because a server's text may repeat secrets. */
function resultOf(error: unknown): TryResult {
  const { code, responseCode, command } = error as {
    code?: string;
    responseCode?: number;
    command?: string;
  };
  const at = command === undefined || !/^[A-Z ]{1,20}$/.test(command) ? "" : ` to ${command}`;
  const why =
    responseCode === undefined ? (code ?? "it cannot be reached") : `it answered ${responseCode}${at}`;
  // 5xx on the message or its addresses concerns this message; on sign-in or greeting it concerns the
  // console.
  const isAboutMessage = code === "EENVELOPE" || code === "EMESSAGE";
  const isFinal = responseCode !== undefined && responseCode >= 500;
  return isAboutMessage && isFinal ? { kind: "refused", why } : { kind: "failed", why };
}
