// The pages by address, each loaded at its first use.
import { type ComponentType, lazy, type ReactNode, Suspense, useEffect } from "react";
import { Route, Switch, useLocation } from "wouter";
import { Frame } from "./frame/frame.tsx";
import { OperatorOnly } from "./frame/operator-only.tsx";
import { PageGuard } from "./frame/page-guard.tsx";
import { connection } from "./live/cluster.ts";
import { Reading } from "./parts/page-state.tsx";

const page = (load: () => Promise<{ Page: ComponentType }>): ComponentType =>
  lazy(async () => ({ default: (await load()).Page }));

const Overview = page(() => import("./pages/overview.tsx"));
const Nodes = page(() => import("./pages/nodes.tsx"));
const Node = page(() => import("./pages/node.tsx"));
const Users = page(() => import("./pages/users.tsx"));
const Alerts = page(() => import("./pages/alerts.tsx"));
const Performance = page(() => import("./pages/performance.tsx"));
const Actions = page(() => import("./pages/actions.tsx"));
const Action = page(() => import("./pages/action.tsx"));
const Rollout = page(() => import("./pages/rollout.tsx"));
const Logs = page(() => import("./pages/logs.tsx"));
const Audit = page(() => import("./pages/audit.tsx"));
const Moves = page(() => import("./pages/moves.tsx"));
const NodeService = page(() => import("./pages/node-service.tsx"));
const SignIn = page(() => import("./pages/sign-in.tsx"));
const Settings = page(() => import("./pages/settings.tsx"));
const Missing = page(() => import("./pages/missing.tsx"));

/** The whole application. */
export function App(): ReactNode {
  const [path] = useLocation();
  useEffect(() => {
    connection.start();
    return () => connection.stop();
  }, []);
  return (
    <Frame>
      <PageGuard place={path}>
        <Suspense fallback={<Reading what="this page" />}>
          <Switch>
            <Route path="/" component={Overview} />
            <Route path="/nodes" component={Nodes} />
            <Route path="/nodes/:id" component={Node} />
            <Route path="/nodes/:id/service">
              <OperatorOnly>
                <NodeService />
              </OperatorOnly>
            </Route>
            <Route path="/moves">
              <OperatorOnly>
                <Moves />
              </OperatorOnly>
            </Route>
            <Route path="/users">
              <OperatorOnly>
                <Users />
              </OperatorOnly>
            </Route>
            <Route path="/alerts" component={Alerts} />
            <Route path="/performance" component={Performance} />
            <Route path="/actions">
              <OperatorOnly>
                <Actions />
              </OperatorOnly>
            </Route>
            <Route path="/actions/rollouts/:id">
              <OperatorOnly>
                <Rollout />
              </OperatorOnly>
            </Route>
            <Route path="/actions/:id">
              <OperatorOnly>
                <Action />
              </OperatorOnly>
            </Route>
            <Route path="/logs">
              <OperatorOnly>
                <Logs />
              </OperatorOnly>
            </Route>
            <Route path="/audit">
              <OperatorOnly>
                <Audit />
              </OperatorOnly>
            </Route>
            <Route path="/sign-in" component={SignIn} />
            <Route path="/settings">
              <OperatorOnly>
                <Settings />
              </OperatorOnly>
            </Route>
            <Route component={Missing} />
          </Switch>
        </Suspense>
      </PageGuard>
    </Frame>
  );
}
