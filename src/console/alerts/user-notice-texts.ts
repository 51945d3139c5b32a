// The words of notices to users, as a mail and as a webhook's body: what is used, and what to do about it.
import { createHash } from "node:crypto";
import { formatBytes } from "#base/bytes.ts";
import { quotaPercent } from "#base/usage-level.ts";
import type { MailText, WebhookPayload } from "./notification-payload.ts";
import type { UserNotice } from "./user-notice.ts";

const NOT_OVER = "0001-01-01T00:00:00Z";
/** Characters of a device's name that are shown. */
const DEVICE_MAX_LENGTH = 40;

/** A notice as a mail. `pageUrl` is the address of a door's pages; undefined where there is none. */
export function userMailText(notice: UserNotice, pageUrl: string | undefined): MailText {
  const { subject, lines } = wordsOf(notice);
  const page = pageUrl === undefined ? [] : [`In a browser: ${pageUrl}`];
  const why =
    notice.group === undefined
      ? "You get this because the files are yours."
      : `You get this because you manage the group ${notice.group}.`;
  const end = `${notice.kind === "sign_in" ? "" : `${why} `}To get no more of these, type: grove notices off`;
  return { subject: `[grove] ${subject}`, text: `${[...lines, ...page, end].join("\n\n")}\n` };
}

/** A notice as a webhook's body, in Alertmanager's form as all others. */
export function userWebhookPayload(
  notice: UserNotice,
  receiver: string,
  pageUrl: string | undefined,
): WebhookPayload {
  const { kind, username, group, usedBytes, quotaBytes, trashBytes, expiresMs, atMs } = notice;
  const { subject, text } = userMailText(notice, pageUrl);
  const labels = {
    alertname: "user_notice",
    kind,
    severity: "info",
    username,
    ...(group === undefined ? {} : { group }),
  };
  const annotations = {
    summary: subject,
    description: text,
    ...(usedBytes === undefined ? {} : { used_bytes: String(usedBytes) }),
    ...(quotaBytes === undefined ? {} : { quota_bytes: String(quotaBytes) }),
    ...(trashBytes === undefined ? {} : { trash_bytes: String(trashBytes) }),
    ...(expiresMs === undefined ? {} : { trash_expires_at: new Date(expiresMs).toISOString() }),
  };
  const identity = `${kind}:${username}:${group ?? ""}`;
  return {
    version: "4",
    groupKey: `{}:{alertname="user_notice", kind=${JSON.stringify(kind)}, username=${JSON.stringify(username)}}`,
    truncatedAlerts: 0,
    status: "firing",
    receiver,
    groupLabels: { alertname: "user_notice", kind, username },
    commonLabels: labels,
    commonAnnotations: annotations,
    externalURL: pageUrl ?? "",
    alerts: [
      {
        status: "firing",
        labels,
        annotations,
        startsAt: new Date(atMs).toISOString(),
        endsAt: NOT_OVER,
        generatorURL: pageUrl ?? "",
        fingerprint: createHash("sha256").update(identity).digest("hex").slice(0, 16),
      },
    ],
  };
}

interface Words {
  readonly subject: string;
  readonly lines: readonly string[];
}

function wordsOf(notice: UserNotice): Words {
  if (notice.kind === "sign_in") return signInWords(notice);
  return notice.kind === "trash" ? trashWords(notice) : quotaWords(notice);
}

function quotaWords({ kind, group, usedBytes, quotaBytes, trashBytes }: UserNotice): Words {
  const [used, quota] = [BigInt(usedBytes ?? 0), BigInt(quotaBytes ?? 1)];
  const whose = group === undefined ? "your storage" : `the storage of the group ${group}`;
  const share = `${quotaPercent(used, quota)} %`;
  const isFull = kind === "quota_full";
  const trash =
    trashBytes === undefined || BigInt(trashBytes) === 0n ? undefined : formatBytes(BigInt(trashBytes));
  const ofTrash = trash === undefined ? "" : `, of which ${trash} are in the trash`;
  return {
    subject: isFull ? `${capital(whose)} is full` : `${share} of ${whose} is used`,
    lines: [
      `${formatBytes(used)} of ${formatBytes(quota)} are used (${share})${ofTrash}.`,
      isFull
        ? "New files are refused until there is room. Reading and deleting go on."
        : "Once all is used, new files are refused.",
      ...roomWords(group, trash),
      `If you need more, ask your operator.`,
    ],
  };
}

/** What frees space. A group's trash empties by its age. */
function roomWords(group: string | undefined, trash: string | undefined): string[] {
  if (group !== undefined) {
    return [
      `To make room, delete what nobody needs: grove rm ${group}@group:/PATH. What is deleted goes to the trash first, and counts until it is gone from there.`,
    ];
  }
  return [
    trash === undefined
      ? "To make room, delete what you do not need (grove rm PATH), then empty the trash: grove trash empty"
      : `To make room, empty the trash, which frees ${trash}: grove trash empty\nWhat is in it cannot be brought back then; grove trash ls shows it.`,
    "To see what is used: grove quota",
  ];
}

function trashWords({ group, trashBytes, expiresMs }: UserNotice): Words {
  const held = trashBytes === undefined ? "items" : formatBytes(BigInt(trashBytes));
  const whose = group === undefined ? "Your trash" : `The trash of the group ${group}`;
  const day = minute(expiresMs ?? 0);
  return {
    subject: `${whose} will lose its oldest items soon`,
    lines: [
      `${whose} holds ${held}. Its oldest items are deleted for good from ${day} on, each when its time is over.`,
      group === undefined
        ? "To see them: grove trash ls\nTo bring one back: grove trash restore PATH\nIf you need none of them, nothing is to do."
        : "If somebody needs one of them, the person who deleted it or an operator brings it back in time.",
    ],
  };
}

function signInWords({ username, address, device, atMs }: UserNotice): Words {
  const from = address === undefined ? "" : ` from ${shown(address, /[^0-9A-Fa-f.:]/gu)}`;
  const name = shown(device ?? "", /[^\p{L}\p{N} _-]/gu);
  const by = name === "" ? "" : ` (${name})`;
  return {
    subject: "A sign-in from a new place",
    lines: [
      `Somebody signed in as ${username} at ${minute(atMs)}${from}${by}.`,
      "If that was you, nothing is to do.",
      "If not: end all sessions (grove logout --everywhere), change your password where you sign in, look at your app passwords (grove app-password list), and tell your operator. To see who is signed in as you: grove sessions",
    ],
  };
}

/** A text that a client has chosen, without what would make a link or a line of it. */
function shown(text: string, unwanted: RegExp): string {
  return text.replaceAll(unwanted, " ").replaceAll(/ +/g, " ").trim().slice(0, DEVICE_MAX_LENGTH);
}

function minute(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
