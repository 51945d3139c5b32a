// Begins and ends a node's maintenance in one step.
import { Button, Modal, TextInput } from "@mantine/core";
import { type ReactNode, type SubmitEvent, useState } from "react";
import { useNowMs } from "../live/cluster.ts";
import { useMaintenance } from "../live/maintenance.ts";
import type { LiveNode } from "../words/live-node.ts";
import { minuteText } from "../words/time.ts";
import { UntilInput, understood } from "./until-input.tsx";

/** The button, for operators. */
export function MaintenanceButton({ node }: { readonly node: LiveNode }): ReactNode {
  const [isOpen, setOpen] = useState(false);
  const { ask, isBusy, error } = useMaintenance(node.id);
  const isIn = node.maintenance !== undefined;
  return (
    <>
      <Button variant="default" size="compact-sm" loading={isBusy} onClick={() => setOpen(true)}>
        {isIn ? "Change maintenance …" : "Maintenance …"}
      </Button>
      {isIn ? (
        <Button variant="default" size="compact-sm" loading={isBusy} onClick={() => ask(undefined)}>
          End maintenance
        </Button>
      ) : null}
      {error === null ? null : <span role="alert">{error.message}</span>}
      <Modal
        lockScroll={false}
        opened={isOpen}
        onClose={() => setOpen(false)}
        title={`Maintenance of ${node.name}`}
        closeButtonProps={{ "aria-label": "Close" }}
      >
        <MaintenanceForm
          label={isIn ? "Change maintenance" : "Begin maintenance"}
          first={node.maintenance}
          onChoose={(endsAt, comment) => {
            setOpen(false);
            ask({ endsAt, comment });
          }}
        />
      </Modal>
    </>
  );
}

function MaintenanceForm({
  label,
  first,
  onChoose,
}: {
  readonly label: string;
  /** What is in force: who changes its reason keeps its end. */
  readonly first: LiveNode["maintenance"];
  readonly onChoose: (end: string, comment: string) => void;
}): ReactNode {
  const [end, setEnd] = useState(first === undefined ? "2h" : minuteText(first.ends_at));
  const [comment, setComment] = useState(first?.comment ?? "");
  const isSound = typeof understood(end, useNowMs()) === "number";
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (isSound) onChoose(end, comment);
  };
  return (
    <form onSubmit={submit} className="stack">
      <UntilInput value={end} onChange={setEnd} />
      <TextInput
        label="Because"
        maxLength={1024}
        value={comment}
        onChange={(event) => setComment(event.currentTarget.value)}
      />
      <p className="quiet">
        Its alerts are still raised and listed, but nobody is told of them; new users come to other nodes. Who
        has files here goes on using them. It ends by itself.
      </p>
      <div>
        <Button type="submit" disabled={!isSound}>
          {label}
        </Button>
      </div>
    </form>
  );
}
