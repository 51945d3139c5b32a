import { readdirSync, readFileSync } from "node:fs";
import { Lab } from "#bench/lab.ts";
import { startFileServer } from "#bench/node.ts";
import { connectedPair } from "#bench/pair.ts";

const [, , tasks = "up,down", rounds = "4", security = "plain", cmp = ""] = process.argv;
const lab = new Lab({ inodes: 1000 });
const cpu = (pid: number): Map<string, number> => {
  const m = new Map<string, number>();
  for (const t of readdirSync(`/proc/${pid}/task`)) {
    try {
      const s = readFileSync(`/proc/${pid}/task/${t}/stat`, "utf8");
      const f = s.slice(s.lastIndexOf(")") + 2).split(" ");
      const name = s.slice(s.indexOf("(") + 1, s.lastIndexOf(")"));
      const key = t === String(pid) ? "main" : name;
      m.set(key + ".u", (m.get(key + ".u") ?? 0) + Number(f[11]) * 10);
      m.set(key + ".s", (m.get(key + ".s") ?? 0) + Number(f[12]) * 10);
    } catch {}
  }
  return m;
};
const diff = (a: Map<string, number>, b: Map<string, number>) =>
  [...b]
    .map(([k, v]) => [k, v - (a.get(k) ?? 0)] as const)
    .filter(([, v]) => v > 20)
    .sort((x, y) => y[1] - x[1])
    .map(([k, v]) => `${k}=${v}`)
    .join(" ");
const folder = await lab.folder("memory");
await lab.warm(folder, 3 * 2 ** 30);
const pair = await startFileServer(lab, folder, security as never);
const kids = readFileSync(`/proc/${pair.server.pid}/task/${pair.server.pid}/children`, "utf8").trim();
const spid = kids ? Number(kids.split(" ")[0]) : pair.server.pid;
const theirs = cmp ? await connectedPair(lab, "grpc-js", security as never) : undefined;
await pair.measure("up", { path: "/large.bin", bytes: 2 ** 30 });
for (const task of tasks.split(","))
  for (let i = 0; i < Number(rounds); i++) {
    const s0 = cpu(spid),
      c0 = cpu(pair.client.pid);
    const r = await pair.measure(task, { path: "/large.bin", bytes: 2 ** 30 });
    const t = theirs ? await theirs.measure(task as never, 2 ** 30) : 0;
    console.log(
      task,
      r.toFixed(0),
      t ? `theirs ${t.toFixed(0)} ratio ${(r / t).toFixed(2)}` : "",
      "SERVER",
      diff(s0, cpu(spid)),
      "CLIENT",
      diff(c0, cpu(pair.client.pid)),
    );
  }
await lab.close();
