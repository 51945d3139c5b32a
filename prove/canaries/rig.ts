// Sends secrets through every path of servers that run as operators start them, and searches all output for
// them (F15: C-13).
//
// Each canary is new and sent once: tokens of sign-ins and wrong ones, passwords, hashes, join tokens,
// tickets, in headers, cookies, queries and broken bodies. The servers' own secrets are in their settings
// from the start: passwords, the nodes' metrics token, keys, and those of webhooks and of mail, whose
// receivers fail.
//
// It searches the servers' output at the level debug, every file below their data folders, and every answer
// but the one that issues a token. It searches metrics and histories, the command lines of processes and the
// environment of their children as well. At the end each server is killed, and must leave no core.
//
// It cannot see memory, swap, or a secret that was hashed or encrypted before it was written.
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { METRICS_PORT_OFFSET } from "#base/metrics-port.ts";
import type { Campaign } from "#prove/campaign.ts";
import type { Rig } from "#prove/rig.ts";
import { freeGrpcPorts } from "#testing/free-ports.ts";
import { textsOfFiles } from "#testing/texts-of-files.ts";
import { closePaths, type Doors, PATHS } from "./paths.ts";
import { coreLimit, processTexts, startWatched, type WatchedServer } from "./watched-server.ts";

const NAMES = Object.keys(PATHS);
const BOUNDLESS = "1000000000";
/** Files that are meant to hold a secret, all of them beside the data folders. */
const SECRETS_FOLDER = "secrets";

/** The rig. */
export const canaries: Rig = {
  name: "canaries",
  figure: "F15",
  unit: "canaries",
  proves:
    "no secret that is put through a server is found in logs, files, answers, metrics or process lists, and no core is left",
  goal: 500,
  shortGoal: NAMES.length,
  plantedGoal: NAMES.length * 2,
  async run(campaign) {
    const folder = await campaign.folder("memory");
    const { doors, servers, own } = await startServers(campaign, folder);
    campaign.atEnd(() => closePaths());
    const hunted = new Map<string, string>(own);
    for (let turn = 0; campaign.shouldGoOn(); turn++) {
      const name = NAMES[turn % NAMES.length] as string;
      const letters = campaign.random.bytes(12).toString("hex");
      const { needles, answers } = (await PATHS[name]?.(doors, letters)) ?? { needles: [], answers: [] };
      for (const needle of needles) {
        hunted.set(needle, name);
        if (answers.some((answer) => answer.includes(needle)))
          campaign.violation(`an answer holds the ${name}`);
      }
      campaign.count("answers searched", answers.length);
      campaign.step();
    }
    search(campaign, hunted, await everywhere(doors, servers, folder));
    await judgeCores(campaign, servers, folder);
  },
};

interface Started {
  readonly doors: Doors;
  readonly servers: readonly WatchedServer[];
  /** The servers' own secrets, with their names. */
  readonly own: readonly (readonly [string, string])[];
}

async function startServers(campaign: Campaign, folder: string): Promise<Started> {
  const secret = (what: string): string => `${what}-${campaign.random.bytes(15).toString("hex")}`;
  const own = {
    password: secret("Operator"),
    metrics: secret("Metrics"),
    signing: secret("Signing"),
    bearer: secret("Hook"),
    mail: secret("Mail"),
    client: secret("Client"),
  };
  await mkdir(join(folder, SECRETS_FOLDER), { recursive: true });
  const notices = join(folder, SECRETS_FOLDER, "notices.json");
  await writeFile(notices, JSON.stringify(NOTICES), { mode: 0o600 });
  const env = {
    SVC_AUTH_MOCK: "1",
    ADMIN_PASSWORD: own.password,
    SVC_METRICS_TOKEN: own.metrics,
    IDP_CLIENT_ID: "rig",
    IDP_CLIENT_SECRET: own.client,
    IDP_TOKENINFO_URL: "http://127.0.0.1:9/tokeninfo",
    RIG_SIGNING: own.signing,
    RIG_BEARER: own.bearer,
    RIG_MAIL: own.mail,
  };
  const [meta = 0, file = 0, web = 0] = await freeGrpcPorts(3);
  const at = (port: number): string => `127.0.0.1:${port}`;
  const data = (name: string): string => join(folder, name);
  const start = async (name: string, words: readonly string[]): Promise<WatchedServer> => {
    const server = await startWatched(name, [...words, "-log_level", "debug"], { env, folder });
    campaign.atEnd(() => server.kill());
    return server;
  };
  const metaserver = await start("metaserver", [
    "metaserver",
    "-listen",
    at(meta),
    "-advertise",
    at(meta),
    "-data",
    data("metaserver"),
  ]);
  const others = await Promise.all([
    start("fileserver", [
      "fileserver",
      "-listen",
      at(file),
      "-advertise",
      at(file),
      "-data",
      data("n1"),
      "-id",
      "n1",
      "-metaserver",
      at(meta),
      "-reserve",
      "1MiB",
      "-register_per_minute",
      BOUNDLESS,
      "-password_failures",
      BOUNDLESS,
    ]),
    start("console", [
      "admin",
      "-listen",
      at(web),
      "-data",
      data("console"),
      "-allow_nodes",
      "127.0.0.1",
      "-meta",
      `sqlite:${join(data("metaserver"), "metadata.db")}`,
      "-notices",
      notices,
      "-login_failures",
      BOUNDLESS,
      "-rate_visitor",
      BOUNDLESS,
      "-rate_operator",
      BOUNDLESS,
    ]),
  ]);
  const doors = {
    fileserver: at(file),
    metaserver: at(meta),
    console: `http://${at(web)}`,
    metrics: `http://${at(file - METRICS_PORT_OFFSET)}`,
    password: own.password,
  };
  const hash = createHash("sha256").update(own.password).digest("hex");
  const hunted = Object.entries(own).map(([what, text]) => [text, `own secret: ${what}`] as const);
  return {
    doors,
    servers: [metaserver, ...others],
    own: [...hunted, [hash, "hash of the operator's password"]],
  };
}

/** Receivers that do not answer: their failures are logged. */
const NOTICES = {
  receivers: [
    {
      name: "hook",
      webhook: {
        url: "https://127.0.0.1:9/hook",
        signing_secret: { env: "RIG_SIGNING" },
        bearer_token: { env: "RIG_BEARER" },
      },
    },
    {
      name: "mail",
      email: {
        to: ["ops@example.com"],
        from: "grove@example.com",
        host: "127.0.0.1",
        port: 9,
        security: "none",
        username: "grove",
        password: { env: "RIG_MAIL" },
      },
    },
  ],
  group_seconds: 0,
};

interface Haystack {
  readonly where: string;
  readonly text: string;
}

async function everywhere(
  doors: Doors,
  servers: readonly WatchedServer[],
  folder: string,
): Promise<Haystack[]> {
  const found: Haystack[] = [];
  for (const server of servers) {
    found.push({ where: `what ${server.name} prints`, text: server.output() });
    found.push({ where: `the process list of ${server.name}`, text: await processTexts(server.pid) });
  }
  for (const url of [
    `${doors.metrics}/metrics`,
    `${doors.metrics}/metrics/prometheus`,
    `${doors.metrics}/security-events`,
    `${doors.console}/metrics`,
    `${doors.console}/metrics/prometheus`,
    `${doors.console}/api/alerts`,
    `${doors.console}/api/cluster`,
  ])
    found.push({ where: url, text: await (await fetch(url)).text() });
  for (const { path, text } of await textsOfFiles(folder)) {
    if (!path.startsWith(join(folder, SECRETS_FOLDER)))
      found.push({ where: path.slice(folder.length), text });
  }
  return found;
}

function search(
  campaign: Campaign,
  hunted: ReadonlyMap<string, string>,
  haystacks: readonly Haystack[],
): void {
  campaign.figure("places searched", haystacks.length);
  campaign.figure(
    "characters searched",
    haystacks.reduce((sum, { text }) => sum + text.length, 0),
  );
  const logs = haystacks.filter(({ where }) => where.startsWith("what "));
  if (!logs.some(({ text }) => text.includes("call_refused") || text.includes("call_failed")))
    throw new Error("the servers' logs were not seen");
  for (const { where, text } of haystacks)
    for (const [needle, what] of hunted)
      if (text.includes(needle)) campaign.violation(`${where} holds the ${what}`);
}

async function judgeCores(
  campaign: Campaign,
  servers: readonly WatchedServer[],
  folder: string,
): Promise<void> {
  const pattern = (await readFile("/proc/sys/kernel/core_pattern", "utf8")).trim();
  for (const server of servers) {
    const limit = await coreLimit(server.pid);
    if (limit !== "0") campaign.violation(`${server.name} may leave a core of ${limit} bytes`);
    await server.crash();
    campaign.count("crashes");
    const names = [
      join(folder, "core"),
      join(folder, `core.${server.pid}`),
      pattern.replaceAll("%p", String(server.pid)),
    ];
    for (const name of names)
      if (!name.startsWith("|") && !name.includes("%") && existsSync(name) && name !== "core")
        campaign.violation(`${server.name} left a core: ${name}`);
  }
}
