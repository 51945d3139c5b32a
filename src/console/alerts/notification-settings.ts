// The settings file of notifications, with receivers and the sources of their secrets (decision D11).
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { z } from "zod";
import { GroveError } from "#base/errors.ts";
import { errorText } from "#base/log.ts";
import { readPrivateFile } from "#os/private-file.ts";
import type { GroupLabel } from "./notification-groups.ts";
import { USER_NOTICE_SUBJECTS, type UserNoticeSubject } from "./user-notice.ts";

/** Time within which news are sent together (decision D11). */
const NOTIFICATION_GROUP_MS = 30_000;
/** Time after which an open alert is sent again (decision D11). */
const NOTIFICATION_REPEAT_MS: number = 4 * 3_600_000;
/** Receivers in the settings. */
const NOTIFICATION_RECEIVERS_MAX = 16;

/** The source of a secret: one of the two. A file must be readable by its owner alone. */
const secret = z
  .object({ file: z.string().min(1).optional(), env: z.string().min(1).optional() })
  .strict()
  .refine(({ file, env }) => (file === undefined) !== (env === undefined), 'give "file" or "env"');

const address = z.string().regex(/^[^\s@<>,;"\\]{1,64}@[^\s@<>,;"\\]{1,255}$/, "not an e-mail address");
const noControl = (text: string): boolean => !/\p{Cc}/u.test(text);

const webhook = z
  .object({
    url: z.string().max(2048),
    signing_secret: secret.optional(),
    bearer_token: secret.optional(),
    ca_file: z.string().min(1).optional(),
    allow_plain_http: z.boolean().default(false),
  })
  .strict();

const email = z
  .object({
    to: z.array(address).min(1).max(16),
    from: address,
    host: z.string().regex(/^[A-Za-z0-9.:-]{1,255}$/, "not a host"),
    port: z.int().min(1).max(65535),
    security: z.enum(["tls", "starttls", "none"]).default("starttls"),
    username: z.string().min(1).max(256).refine(noControl, "holds control characters").optional(),
    password: secret.optional(),
    ca_file: z.string().min(1).optional(),
    allow_plain_smtp: z.boolean().default(false),
  })
  .strict();

const receiver = z
  .object({
    name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "letters, digits, dot, dash, underscore"),
    min_severity: z.enum(["warning", "critical", "none"]).default("warning"),
    webhook: webhook.optional(),
    email: email.optional(),
  })
  .strict()
  .refine((it) => (it.webhook === undefined) !== (it.email === undefined), 'give "webhook" or "email"');

const userNotices = z
  .object({
    receivers: z.array(z.string()).min(1).max(4),
    about: z
      .array(z.enum(USER_NOTICE_SUBJECTS))
      .min(1)
      .default([...USER_NOTICE_SUBJECTS]),
    page_url: z.url({ protocol: /^https?$/ }).optional(),
  })
  .strict();

const settingsFile = z
  .object({
    schema: z.literal(1).default(1),
    receivers: z.array(receiver).min(1).max(NOTIFICATION_RECEIVERS_MAX),
    quota_user_receiver: z.string().optional(),
    user_notices: userNotices.optional(),
    console_url: z.url({ protocol: /^https?$/ }).optional(),
    group_by: z.array(z.enum(["alertname", "node_id", "username"])).default(["alertname"]),
    group_seconds: z
      .int()
      .min(0)
      .max(600)
      .default(NOTIFICATION_GROUP_MS / 1_000),
    repeat_hours: z
      .number()
      .min(0.1)
      .max(168)
      .default(NOTIFICATION_REPEAT_MS / 3_600_000),
  })
  .strict();

/** Lowest severity that a receiver gets; "none" leaves it to quota_user_receiver. */
type MinSeverity = "warning" | "critical" | "none";

/** A webhook with its secrets. */
export interface WebhookSettings {
  readonly kind: "webhook";
  readonly name: string;
  readonly minSeverity: MinSeverity;
  readonly url: URL;
  readonly signingSecret: string | undefined;
  readonly bearerToken: string | undefined;
  /** PEM certificates that are trusted instead of the system's. */
  readonly ca: string | undefined;
}

/** A mail server and its recipients, with its secrets. */
export interface EmailSettings {
  readonly kind: "email";
  readonly name: string;
  readonly minSeverity: MinSeverity;
  readonly to: readonly string[];
  readonly from: string;
  readonly host: string;
  readonly port: number;
  readonly security: "tls" | "starttls" | "none";
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly ca: string | undefined;
}

/** One receiver. */
export type ReceiverSettings = WebhookSettings | EmailSettings;

/** What users are told about themselves, and by which receivers. */
export interface UserNoticeSettings {
  readonly receivers: readonly ReceiverSettings[];
  readonly about: readonly UserNoticeSubject[];
  /** Address of a door's pages, for the text; undefined without one. */
  readonly pageUrl: string | undefined;
}

/** All settings. */
export interface NotificationSettings {
  readonly receivers: readonly ReceiverSettings[];
  /** Name of the receiver for users' own quotas: a mail to the user, or a message per user to a webhook. */
  readonly quotaUserReceiver: string | undefined;
  /** Undefined: users are told nothing of their own. */
  readonly userNotices?: UserNoticeSettings | undefined;
  readonly consoleUrl: string | undefined;
  readonly groupBy: readonly GroupLabel[];
  readonly groupMs: number;
  readonly repeatMs: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the file; paths in it are relative to its folder. Throws BAD_ARGUMENT that names the file and the
 * wrong place in it, never a secret.
 */
export async function readNotificationSettings(
  path: string,
  env: Environment,
): Promise<NotificationSettings> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    throw new GroveError("BAD_ARGUMENT", `${path} cannot be read: ${errorText(error)}`);
  });
  const problem = (detail: string): GroveError => new GroveError("BAD_ARGUMENT", `${path}: ${detail}`);
  const checked = settingsFile.safeParse(parse(text, problem));
  if (!checked.success) {
    throw problem(checked.error.issues.map(({ path: at, message }) => `${place(at)}: ${message}`).join("; "));
  }
  const file = checked.data;
  const from = { folder: dirname(resolve(path)), env };
  const receivers: ReceiverSettings[] = [];
  for (const [at, each] of file.receivers.entries()) {
    if (receivers.some(({ name }) => name === each.name)) {
      throw problem(`receivers.${at}.name: ${each.name} is there twice`);
    }
    try {
      receivers.push(await receiverOf(each, from));
    } catch (error) {
      throw problem(`receivers.${at}: ${errorText(error)}`);
    }
  }
  const hook = file.quota_user_receiver;
  if (hook !== undefined && !receivers.some(({ name }) => name === hook)) {
    throw problem(`quota_user_receiver: there is no receiver ${hook}`);
  }
  return {
    receivers,
    quotaUserReceiver: hook,
    userNotices: userNoticesOf(file, receivers, problem),
    consoleUrl: file.console_url,
    groupBy: file.group_by,
    groupMs: file.group_seconds * 1_000,
    repeatMs: file.repeat_hours * 3_600_000,
  };
}

function userNoticesOf(
  { user_notices: wanted, quota_user_receiver: hook }: z.infer<typeof settingsFile>,
  receivers: readonly ReceiverSettings[],
  problem: (detail: string) => GroveError,
): UserNoticeSettings | undefined {
  if (wanted === undefined) return undefined;
  if (hook !== undefined) {
    throw problem("user_notices: they tell users of their quota too, so leave quota_user_receiver out");
  }
  const found = [...new Set(wanted.receivers)].map((wantedName) => {
    const receiver = receivers.find(({ name }) => name === wantedName);
    if (receiver === undefined) throw problem(`user_notices.receivers: there is no receiver ${wantedName}`);
    return receiver;
  });
  return { receivers: found, about: wanted.about, pageUrl: wanted.page_url };
}

interface Sources {
  readonly folder: string;
  readonly env: Environment;
}

async function receiverOf(file: z.infer<typeof receiver>, from: Sources): Promise<ReceiverSettings> {
  const { name, min_severity: minSeverity } = file;
  if (file.webhook !== undefined) {
    const { url, signing_secret, bearer_token, ca_file, allow_plain_http } = file.webhook;
    return {
      kind: "webhook",
      name,
      minSeverity,
      url: webhookUrl(url, allow_plain_http),
      signingSecret: await secretOf(signing_secret, "webhook.signing_secret", from),
      bearerToken: await secretOf(bearer_token, "webhook.bearer_token", from),
      ca: await certificates(ca_file, from),
    };
  }
  if (file.email === undefined) throw new Error('give "webhook" or "email"');
  const {
    to,
    from: sender,
    host,
    port,
    security,
    username,
    password,
    ca_file,
    allow_plain_smtp,
  } = file.email;
  if (security === "none" && !allow_plain_smtp && !isLoopback(host)) {
    throw new Error('email.security: "none" sends mail in the clear; allow_plain_smtp says that you mean it');
  }
  if ((username === undefined) !== (password === undefined)) {
    throw new Error("email: username and password belong together");
  }
  if (security === "none" && password !== undefined && !isLoopback(host)) {
    throw new Error("email: a password is not sent without TLS");
  }
  return {
    kind: "email",
    name,
    minSeverity,
    to,
    from: sender,
    host,
    port,
    security,
    username,
    password: await secretOf(password, "email.password", from),
    ca: await certificates(ca_file, from),
  };
}

function webhookUrl(text: string, allowPlain: boolean): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new Error("webhook.url: not an http or https address");
  if (url.username !== "" || url.password !== "") {
    throw new Error("webhook.url: must not hold a user name or password; use bearer_token");
  }
  if (url.protocol === "http:" && !allowPlain && !isLoopback(url.hostname)) {
    throw new Error("webhook.url: only https leaves this machine; allow_plain_http says that you mean it");
  }
  url.hash = "";
  return url;
}

function isLoopback(host: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)$/.test(host);
}

async function secretOf(
  source: z.infer<typeof secret> | undefined,
  name: string,
  { folder, env }: Sources,
): Promise<string | undefined> {
  if (source === undefined) return undefined;
  const text =
    source.env === undefined ? await secretFile(resolve(folder, source.file ?? "")) : env[source.env];
  const value = text?.trim();
  if (value === undefined) throw new Error(`${name}: the variable ${source.env ?? ""} is not set`);
  if (value === "") throw new Error(`${name}: it is empty`);
  if (!noControl(value)) throw new Error(`${name}: it holds control characters`);
  return value;
}

async function secretFile(path: string): Promise<string> {
  const text = await readPrivateFile(path);
  if (text === undefined) throw new Error(`there is no file ${path}`);
  return text;
}

async function certificates(path: string | undefined, { folder }: Sources): Promise<string | undefined> {
  return path === undefined ? undefined : await readFile(resolve(folder, path), "utf8");
}

function parse(text: string, problem: (detail: string) => GroveError): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // The parser's message may quote the file. Settings hold no secrets, but a wrong file might.
    throw problem(error instanceof SyntaxError ? "it is not JSON" : errorText(error));
  }
}

function place(path: readonly PropertyKey[]): string {
  return path.length === 0 ? "the file" : path.map(String).join(".");
}
