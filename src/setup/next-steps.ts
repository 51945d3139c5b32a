// What a person types after `grove init`, here and on the next machine.
import { join } from "node:path";
import { CONSOLE_PORT } from "#base/limits.ts";
import { formatHostPort } from "#base/node-id.ts";
import { type Answers, rolesOf } from "./answers.ts";
import { FIRST_PASSWORD_FILE } from "./certificates.ts";
import type { Machine } from "./machine.ts";
import { dataFolders, serviceOf, unitOf } from "./plan.ts";
import { MOCK } from "./provider.ts";

/** The last lines of a run. */
export function nextSteps(
  answers: Answers,
  machine: Machine,
  { below, isRestart }: { readonly below: string | undefined; readonly isRestart: boolean },
): string[] {
  const roles = rolesOf(answers);
  const folders = dataFolders(answers);
  const services = roles.map((role) => `svc-${serviceOf(role)}`).join(" ");
  const start = machine.isSystem
    ? [`  systemctl ${isRestart ? "restart" : "start"} ${services}`]
    : roles.map((role) => `  the command of ExecStart= in ${join(machine.units, unitOf(role))}`);
  const where = below === undefined ? "" : ` -below ${below}`;
  const lines = ["Type next, here:", ...start];
  if (roles.includes("metaserver") && answers.provider !== MOCK) {
    lines.push(
      "For each further machine, here (n2 and its name are examples), then there with the file that this makes:",
      `  grove init invite n2 n2.example.net${where}`,
      "  grove init -answers n2.answers && systemctl start svc-fileserver && rm n2.answers",
    );
  }
  if (roles.includes("metaserver")) {
    const mock = answers.provider === MOCK ? " --mock alice@example.com" : "";
    lines.push(
      `People, with a copy of ${join(folders.top, "cluster.json")}, which holds no secret:`,
      `  grove login --cluster cluster.json${mock}`,
    );
  }
  if (roles.includes("console")) {
    const place = formatHostPort({ host: answers.name ?? "", port: CONSOLE_PORT });
    lines.push(
      `The console is https://${place}; its first password is in ${join(folders.console, FIRST_PASSWORD_FILE)}:`,
      "  read it, set your own with 'grove admin password rotate', and remove that file",
    );
  }
  if (roles.includes("metaserver")) {
    lines.push(`Keep a copy of ${join(folders.authority, "ca.key")} in a safe place off this machine.`);
  }
  return lines;
}
