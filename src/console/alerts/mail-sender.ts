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

/** A recipient that the server did not accept. */
interface RefusedRecipient {
  /** The address as the server was told it. */
  readonly address: string;
  readonly code: number;
}

/** A mail that some of its recipients have, and that is tried again with others. */
interface PartlySent {
  readonly seq: number;
  /** Those that may accept it later. */
  readonly open: readonly RefusedRecipient[];
  /** Those that never will. */
  readonly lost: readonly RefusedRecipient[];
}

/** Makes the sender of a mailbox for messages of any kind, by the function that words them. */
export function mailSenderOf<N>(
  settings: EmailSettings,
  wordsOf: (notice: N) => MailText,
): NotificationSender<N> {
  /** Only the newest: messages are tried one after another. */
  let partly: PartlySent | undefined;
  return {
    async send(queued, signal) {
      const { seq } = queued;
      const all = queued.to === undefined ? settings.to : [queued.to];
      const begun = partly?.seq === seq ? partly : undefined;
      const to = begun?.open.map(({ address }) => address) ?? all;
      const mail = mailOf(settings, { ...queued, words: wordsOf(queued.notice), all, to });
      const { result, refused } = await deliver(settings, mail, signal);
      const isSent = result.kind === "delivered";
      if (!isSent && begun === undefined) return result;
      // A try that ended before each recipient had an answer changes nothing.
      const isJudged = isSent || refused.length === to.length || begun === undefined;
      const now = isJudged ? sentBut(seq, begun?.lost ?? [], refused) : begun;
      partly = now.open.length > 0 ? now : undefined;
      return resultOfPart(now);
    },
  };
}

/** One try's mail: its head names everybody, and its envelope those who do not have it yet. */
function mailOf(
  { from }: EmailSettings,
  mail: {
    readonly seq: number;
    readonly createdWallMs: number;
    readonly words: MailText;
    readonly all: readonly string[];
    readonly to: readonly string[];
  },
): SendMailOptions {
  const { seq, createdWallMs, words } = mail;
  const domain = from.slice(from.lastIndexOf("@") + 1);
  // Parsed addresses, so that no part of one is read as a second address.
  const parsed = (addresses: readonly string[]): { name: string; address: string }[] =>
    addresses.map((address) => ({ name: "", address }));
  return {
    from,
    to: parsed(mail.all),
    envelope: { from, to: parsed(mail.to) },
    subject: words.subject,
    text: words.text,
    // The same for every try, so that mailboxes recognise a repetition.
    messageId: `<${createdWallMs}-${seq}.grove@${domain}>`,
    date: new Date(createdWallMs),
    headers: { "Auto-Submitted": "auto-generated" },
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}

/** Status codes from here on are final (RFC 5321, 4.2.1). */
const REFUSED_FOR_GOOD = 500;

function sentBut(
  seq: number,
  lost: readonly RefusedRecipient[],
  refused: readonly RefusedRecipient[],
): PartlySent {
  const open = refused.filter(({ code }) => code < REFUSED_FOR_GOOD);
  return { seq, open, lost: [...lost, ...refused.filter((each) => !open.includes(each))] };
}

function resultOfPart({ lost, open }: PartlySent): TryResult {
  const refused = [...lost, ...open];
  if (refused.length === 0) return { kind: "delivered" };
  const each = refused.map(({ address, code }) => `${code} for ${address}`);
  const why = `it answered ${each.join(", ")}; the other recipients have the mail`;
  return { kind: "partly", why, isOpen: open.length > 0 };
}

/** A try with one envelope: its result for the mail, and the recipients that were refused. */
interface Try {
  readonly result: TryResult;
  readonly refused: readonly RefusedRecipient[];
}

/** The part of nodemailer's answers and errors that tells of recipients. */
interface WithRecipients {
  readonly rejectedErrors?: readonly { readonly recipient?: string; readonly responseCode?: number }[];
}

async function deliver(settings: EmailSettings, mail: SendMailOptions, signal: AbortSignal): Promise<Try> {
  const transport = await openTransport(settings);
  const aborted = Promise.withResolvers<Try>();
  const onAbort = (): void => {
    aborted.resolve({ result: { kind: "failed", why: "no answer in time" }, refused: [] });
    transport.close();
  };
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const sent = transport.sendMail(mail).then(
      (info): Try => ({ result: { kind: "delivered" }, refused: refusedOf(info) }),
      (error: unknown): Try => ({ result: resultOf(error), refused: refusedOf(error) }),
    );
    return await Promise.race([sent, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
    transport.close();
  }
}

function refusedOf(told: unknown): RefusedRecipient[] {
  const { rejectedErrors = [] } = told as WithRecipients;
  // What is no answer of SMTP is no end.
  return rejectedErrors.map(({ recipient = "", responseCode: code = 0 }) => ({ address: recipient, code }));
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
