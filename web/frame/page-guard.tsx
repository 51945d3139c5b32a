// Catches a page that fails while it is drawn: the frame stays, and the page says so instead of vanishing.
import { Button } from "@mantine/core";
import { Component, type ReactNode } from "react";

interface Props {
  /** Another place is another try. */
  readonly place: string;
  readonly children: ReactNode;
}
interface State {
  readonly failedAt: string | undefined;
  readonly message: string;
}

/** Draws its children; after an error of theirs, what went wrong, until another place is gone to. */
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
