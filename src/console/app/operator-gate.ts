// Authentication of operators: the password, the sessions, the tickets and the limit of attempts (spec 5.8).

import type { ConsoleMetrics } from "#console/http/console-metrics.ts";
import { LoginLimiter } from "#console/operators/login-limiter.ts";
import type { OperatorPassword } from "#console/operators/operator-password.ts";
import { OperatorSessions } from "#console/operators/operator-sessions.ts";
import { Tickets } from "#console/operators/tickets.ts";
import type { ConsoleOptions } from "#console/services/console-options.ts";

/** The parts that authenticate operators. */
export interface OperatorGate {
  readonly sessions: OperatorSessions;
  readonly tickets: Tickets;
  readonly limiter: LoginLimiter;
  readonly password: OperatorPassword;
}

/** Builds the parts. */
export function openGate(
  options: ConsoleOptions,
  metrics: ConsoleMetrics,
  ends: AsyncDisposableStack,
): OperatorGate {
  const { clock, random, password } = options;
  const sessions = new OperatorSessions({ clock, random });
  ends.defer(() => sessions.close());
  const limiter = new LoginLimiter(clock, options.loginFailures);
  metrics.add(
    { name: "sessions", type: "gauge", help: "Operators who are signed in.", read: () => sessions.count },
    {
      name: "sign_in_failures",
      type: "gauge",
      help: "Wrong passwords in the last hour, at most 100.",
      read: () => limiter.failures().lastHour,
    },
  );
  return { sessions, limiter, password, tickets: new Tickets({ clock, random, sessions }) };
}
