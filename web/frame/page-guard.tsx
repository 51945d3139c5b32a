// Catches a page's render error: the frame stays and shows the error.
import { Button } from "@mantine/core";
import { Component, type ReactNode } from "react";

interface Props {
  /** A new place resets the error. */
  readonly place: string;
  readonly children: ReactNode;
}
interface State {
  readonly failedAt: string | undefined;
  readonly message: string;
}

/** Renders its children, or their error until the place changes. */
export class PageGuard extends Component<Props, State> {
  override state: State = { failedAt: undefined, message: "" };

  static getDerivedStateFromError(error: unknown): Partial<State> {
    return { failedAt: "", message: error instanceof Error ? error.message : String(error) };
  }

  static getDerivedStateFromProps({ place }: Props, { failedAt }: State): Partial<State> | null {
    if (failedAt === undefined || failedAt === place) return null;
    return failedAt === "" ? { failedAt: place } : { failedAt: undefined };
  }

  override render(): ReactNode {
    if (this.state.failedAt === undefined) return this.props.children;
    return (
      <div role="alert">
        <h1>This page failed</h1>
        <p>
          It is an error of the console's pages, not of the cluster. The rest of them works; this one may
          after a reload.
        </p>
        <p className="quiet">{this.state.message}</p>
        <Button variant="default" onClick={() => location.reload()}>
          Reload
        </Button>
      </div>
    );
  }
}
