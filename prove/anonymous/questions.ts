// Requests of visitors: public routes and forbidden ones, well-formed and malformed.
import type { SeededRandom } from "#prove/seeded-random.ts";
import type { Question } from "./twin.ts";

const get = (url: string, headers?: Readonly<Record<string, string>>): Question =>
  headers === undefined ? { method: "GET", url } : { method: "GET", url, headers };

/** Sent in every pair. */
const ALWAYS: readonly Question[] = [
  get("/api/cluster"),
  get("/api/cluster/summary"),
  get("/api/performance"),
  get("/api/alerts"),
  get("/api/alerts/summary"),
  get("/api/auth/status"),
  get("/ready"),
];

/** Some of these are sent in each pair. */
const SOMETIMES: readonly Question[] = [
  get("/health"),
  get("/api/version"),
  get("/metrics"),
  get("/metrics/prometheus"),
  get("/api/settings"),
  get("/api/users"),
  get("/api/users?search=alice"),
  get("/api/users/alice1@example.com/quota"),
  get("/api/users/alice1@example.com/state"),
  { method: "PUT", url: "/api/users/alice1@example.com/quota", body: '{"quota_bytes":1}' },
  get("/api/audit"),
  get("/api/audit/chains"),
  get("/api/notices"),
  get("/api/silences"),
  { method: "DELETE", url: "/api/silences/01JD0000000000000000000000" },
  get("/api/maintenance"),
  { method: "PUT", url: "/api/maintenance/n1", body: '{"duration":"2h"}' },
  { method: "DELETE", url: "/api/maintenance/n1" },
  get("/api/moves"),
  { method: "POST", url: "/api/moves/alice1@example.com/undo" },
  { method: "POST", url: "/api/drains/n1/plan" },
  { method: "PUT", url: "/api/drains/n1" },
  { method: "POST", url: "/api/rebalance/plan" },
  get("/api/auth/sessions"),
  { method: "POST", url: "/api/auth/ws-ticket" },
  { method: "POST", url: "/api/auth/logout" },
  { method: "POST", url: "/api/auth/login", body: '{"password":""}' },
  get("/api/actions/history"),
  get("/api/actions/01JD0000000000000000000000"),
  get("/api/logs/tail?node_id=n1&lines=10"),
  { method: "POST", url: "/api/alerts/resolve", body: '{"ids":["01JD0000000000000000000000"]}' },
  { method: "POST", url: "/api/alerts/resolve-all", body: "{}" },
  get("/api/alerts?type=quota_exceeded"),
  get("/api/alerts?severity=critical&limit=1"),
  get("/api/alerts?severity=nonsense"),
  get("/api/alerts?unresolved=true&limit=2"),
  get("/api/alerts?node_id=n1"),
  get("/api/alerts?node_id=alice1@example.com"),
  get("/api/history/n1"),
  get("/api/history/n2?step=60"),
  get("/api/history/alice1@example.com"),
  get("/api/history/nobody"),
  get("/api/history/n1?from=nonsense"),
  get("/api/performance/export"),
  get("/api/performance/export?node_id=n1"),
  get("/api/performance/export?node_id=nobody"),
  get("/api/openapi.json"),
  get("/ws/cluster"),
  get("/ws/actions"),
  get("/api/nothing"),
  get("/api/cluster", { authorization: `Bearer ${"0".repeat(64)}` }),
  get("/api/cluster", { cookie: `svc_admin_token=${"0".repeat(64)}` }),
  get("/api/cluster?token=nonsense"),
  get("/api/cluster", { "if-none-match": "*" }),
  { method: "HEAD", url: "/api/cluster" },
  { method: "HEAD", url: "/api/alerts" },
  { method: "POST", url: "/api/cluster", body: "{" },
];

const SOME = 8;

/** Returns the requests of one pair. */
export function questionsOf(random: SeededRandom): Question[] {
  return [...ALWAYS, ...Array.from({ length: SOME }, () => random.pick(SOMETIMES))];
}
