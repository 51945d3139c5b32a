// Joins the action engine with the store, the alerts, maintenance, the audit log and live output.

import { stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { errorText } from "#base/log.ts";
import type { SshNode } from "#base/ssh-node.ts";
import type { Notifier } from "#console/alerts/notifier.ts";
import type { ClusterWatch } from "#console/cluster/cluster-watch.ts";
import type { History } from "#console/history/history.ts";
import type { Hub } from "#console/live/hub.ts";
import { ActionEngine, type AuditedAction, type TakenAction } from "#console/orchestration/action-engine.ts";
import { ActionHistory } from "#console/orchestration/action-history.ts";
import type { ActionOperator } from "#console/orchestration/action-job.ts";
import { enrolledNode } from "#console/orchestration/action-nodes.ts";
import { ActionRefusal } from "#console/orchestration/action-refusal.ts";
import { LocalLogs } from "#console/orchestration/local-logs.ts";
import { LogReader } from "#console/orchestration/log-reader.ts";
import type { NodeLocks } from "#console/orchestration/node-locks.ts";
import { NodeSource } from "#console/orchestration/node-source.ts";
import { OutputStore } from "#console/orchestration/output-store.ts";
import { readPresets } from "#console/orchestration/presets.ts";
import type { BackRequest, Rollouts } from "#console/orchestration/rollouts.ts";
import { openRunner, type SshRunner } from "#console/orchestration/ssh-runner.ts";
import type { AuditLog } from "#security/audit/audit-log.ts";
import type { ActionPreset } from "#wire/webapi/action-record.ts";
import type { ActionRequest, Service } from "#wire/webapi/action-request.ts";
import type { RolloutRecord, RolloutRequest } from "#wire/webapi/rollout.ts";
import { tellingOfHostKeys, tellOfAction } from "./action-alerts.ts";
import { ActionTopics } from "./action-topics.ts";
import type { AlertService } from "./alert-service.ts";
import { configuredSecrets } from "./configured-secrets.ts";
import type { ConsoleOptions } from "./console-options.ts";
import { Enrolment } from "./enrolment.ts";
import { LogTopics } from "./log-topics.ts";
import { openRollouts } from "./rollout-service.ts";

/** Dependencies of the service. */
export interface ActionServiceDeps {
  readonly options: ConsoleOptions;
  readonly audit: AuditLog;
  readonly alerts: Pick<AlertService, "happened" | "settled" | "wasReset">;
  readonly notifier: Pick<Notifier, "openMaintenance" | "closeMaintenance">;
  readonly watch: Pick<ClusterWatch, "clusterState" | "isHealthy">;
  readonly history: Pick<History, "errorsPerSecond">;
  /** The nodes' locks, which polls show too. */
  readonly locks: NodeLocks;
  readonly hub: Pick<Hub, "publish" | "addSource">;
}

/** The service. One instance for each console. */
export class ActionService {
  readonly engine: ActionEngine;
  readonly outputs: OutputStore;
  readonly presets: readonly ActionPreset[];
  readonly rollouts: Rollouts;
  readonly enrolment: Enrolment;
  readonly #closeRollouts: () => Promise<void>;
  readonly #logs: LogReader;
  readonly #ssh: SshRunner;
  readonly #keyFile: string;

  private constructor(parts: {
    readonly engine: ActionEngine;
    readonly outputs: OutputStore;
    readonly presets: readonly ActionPreset[];
    readonly rollouts: { readonly rollouts: Rollouts; readonly close: () => Promise<void> };
    readonly ssh: SshRunner;
    readonly keyFile: string;
    readonly logs: LogReader;
    readonly enrolment: Enrolment;
  }) {
    this.engine = parts.engine;
    this.outputs = parts.outputs;
    this.presets = parts.presets;
    this.rollouts = parts.rollouts.rollouts;
    this.#closeRollouts = parts.rollouts.close;
    this.#logs = parts.logs;
    this.enrolment = parts.enrolment;
    this.#ssh = parts.ssh;
    this.#keyFile = parts.keyFile;
  }

  /**
   * Reads the history and begins to settle an earlier console's actions. Throws BAD_ARGUMENT for an invalid
   * presets file.
   */
  static async open(deps: ActionServiceDeps): Promise<ActionService> {
    const { options, alerts, watch, locks, hub } = deps;
    const { clock, log, random, dataFolder, directory } = options;
    const ssh = options.ssh ?? {};
    const presets = await readPresets(ssh.presetsFile);
    // The default of ssh itself (spec 4.7).
    const keyFile = ssh.keyFile ?? join(homedir(), ".ssh", "id_ed25519");
    const limit = ssh.historyLimit === undefined ? {} : { limit: ssh.historyLimit };
    const { history, setAsideAs } = await ActionHistory.open({ folder: dataFolder, clock, log, ...limit });
    if (setAsideAs !== undefined) alerts.wasReset("command_history.json", setAsideAs);
    const outputs = await OutputStore.open(dataFolder);
    const secrets = (): string[] => configuredSecrets(options);
    const { isHealthy } = watch;
    const runner = openRunner({ clock, log, keyFile, secrets, user: ssh.user, isHealthy });
    const store = (): Promise<readonly SshNode[]> => directory.sshNodes();
    const source = new NodeSource({ folder: dataFolder, log, store, snippet: ssh.snippet });
    const nodes = (): Promise<readonly SshNode[]> => source.nodes();
    const enrolment = new Enrolment({ nodes, cluster: watch.clusterState, store: options.store });
    const local = new LocalLogs({ clock, files: ssh.localLogs ?? [], secrets });
    const nodeOf = (id: string): Promise<SshNode> => reachableNode(id, { nodes, enrolment, keyFile });
    const nameOf = (id: string): string => watch.clusterState.node(id)?.name ?? id;
    const telling = tellingOfHostKeys(runner.runner, nameOf, alerts);
    const logs = new LogReader({ clock, random, runner: telling, local, nodeOf });
    const topics = new ActionTopics({
      hub,
      find: (id) => engine.find(id),
      outputOf: (id) => engine.outputOf(id),
    });
    const openMaintenance = maintenanceOf(deps.notifier);
    const engine: ActionEngine = new ActionEngine({
      clock,
      random,
      log,
      history,
      outputs,
      locks,
      nodes,
      nameOf,
      runner: runner.runner,
      secrets,
      allowsCustom: ssh.allowsCustom ?? true,
      openMaintenance,
      audit: (act, action) => auditAction(deps.audit, act, action),
      events: {
        onState: (record, seq) => topics.state(record, seq),
        onOutput: (id, entry) => topics.output(id, entry),
        onEnd: (record) => tellOfAction(record, alerts),
        onDone: (record, seq) => topics.done(record, seq),
      },
    });
    hub.addSource(topics);
    hub.addSource(new LogTopics({ clock, hub, reader: logs }));
    const shared = { engine, runner: telling, locks, nodes, nameOf, secrets, openMaintenance };
    const rollouts = await openRollouts(deps, shared);
    const opened = new ActionService({
      engine,
      outputs,
      presets,
      rollouts,
      ssh: runner,
      keyFile,
      logs,
      enrolment,
    });
    engine
      .reconcile()
      .catch((error: unknown) => log.error("actions_not_reconciled", { error: errorText(error) }));
    return opened;
  }

  /** Accepts an action. Throws ActionRefusal, also for a missing key. */
  async submit(request: ActionRequest, operator: ActionOperator): Promise<TakenAction> {
    if (!request.dry_run) await requireKey(this.#keyFile);
    return await this.enrolment.explaining(() => this.engine.submit(request, operator));
  }

  /** Accepts a rollout. Throws ActionRefusal. */
  async startRollout(request: RolloutRequest, operator: ActionOperator): Promise<RolloutRecord> {
    if (!request.dry_run) await requireKey(this.#keyFile);
    return await this.enrolment.explaining(() => this.rollouts.start(request, operator));
  }

  /** Brings the nodes of a rollout back. Throws ActionRefusal. */
  async goBack(
    before: RolloutRecord,
    requested: BackRequest,
    operator: ActionOperator,
  ): Promise<RolloutRecord> {
    if (!requested.dry_run) await requireKey(this.#keyFile);
    return await this.enrolment.explaining(() => this.rollouts.back(before, requested, operator));
  }

  /** The last lines of a service's log on a node. Throws ActionRefusal. */
  tail(nodeId: string, service: Service, lines: number): ReturnType<LogReader["tail"]> {
    return this.#logs.tail(nodeId, service, lines);
  }

  /**
   * Refuses new actions and ends those on nodes, while the console can still answer the requests that wait
   * for them.
   */
  async stop(): Promise<void> {
    this.#logs.close();
    // At once: each may take most of the time that a stop has.
    await Promise.all([this.#closeRollouts(), this.engine.close()]);
  }

  /** Stops, and closes the connections. */
  async close(): Promise<void> {
    await this.stop();
    await this.#ssh.close();
  }
}

/** A reachable node. Throws ActionRefusal. */
async function reachableNode(
  id: string,
  ways: {
    readonly nodes: () => Promise<readonly SshNode[]>;
    readonly enrolment: Enrolment;
    readonly keyFile: string;
  },
): Promise<SshNode> {
  const node = await ways.enrolment.explaining(async () => enrolledNode(await ways.nodes(), id));
  await requireKey(ways.keyFile);
  return node;
}

/** Throws ActionRefusal without an SSH key. */
async function requireKey(keyFile: string): Promise<void> {
  try {
    await stat(keyFile);
  } catch {
    throw new ActionRefusal(
      "unavailable",
      `there is no SSH key at ${keyFile}; make one with ssh-keygen -t ed25519, or give -ssh_key`,
    );
  }
}

function maintenanceOf(
  notifier: ActionServiceDeps["notifier"],
): (nodeIds: readonly string[], untilWallMs: number, reason: string) => () => void {
  return (nodeIds, untilWallMs, reason) => {
    const id = notifier.openMaintenance({ nodeIds, untilWallMs, reason });
    return () => notifier.closeMaintenance(id);
  };
}

async function auditAction(
  audit: AuditLog,
  act: "action.start" | "action.cancel" | "action.end",
  { operator, record }: AuditedAction,
): Promise<void> {
  const { id, action, targets, state, exit_code: exitCode } = record;
  await audit.write({
    act,
    actor: operator.session,
    subject: id,
    request: operator.requestId,
    detail: {
      action,
      nodes: targets.map((target) => target.node_id).join(","),
      ip: operator.ip,
      ...(act === "action.end" ? { state, exit_code: exitCode ?? undefined } : {}),
    },
  });
}
