// Changes one user's quota: says before what will happen, and offers the old value after.
import { Button, Modal, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, type SubmitEvent, useState } from "react";
import { parseBytes } from "#base/bytes.ts";
import type { UserRow } from "#webapi/user.ts";
import { type QuotaChanged, setQuota } from "../live/users.ts";
import { bytesText } from "../words/number.ts";
import { quotaText } from "./user-table.tsx";

const U64_MAX = (1n << 64n) - 1n;

/** The dialog for a user; nothing while none is chosen. */
export function QuotaEditor({
  user,
  onClose,
  onChanged,
}: {
  readonly user: UserRow | undefined;
  readonly onClose: () => void;
  readonly onChanged: (changed: QuotaChanged, before: UserRow) => void;
}): ReactNode {
  return (
    <Modal
      lockScroll={false}
      opened={user !== undefined}
      onClose={onClose}
      title={user === undefined ? "" : `Quota of ${user.username}`}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {user === undefined ? null : (
        <Form key={user.username} user={user} onClose={onClose} onChanged={onChanged} />
      )}
    </Modal>
  );
}

function Form({
  user,
  onClose,
  onChanged,
}: {
  readonly user: UserRow;
  readonly onClose: () => void;
  readonly onChanged: (changed: QuotaChanged, before: UserRow) => void;
}): ReactNode {
  const [text, setText] = useState(bytesText(user.quota_limit));
  const bytes = parseBytes(text);
  const isSound = bytes !== undefined && bytes > 0n && bytes <= U64_MAX;
  const change = useMutation({
    mutationFn: (quotaBytes: bigint) => setQuota(user.username, quotaBytes),
    onSuccess: (changed) => {
      onChanged(changed, user);
      onClose();
    },
  });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (isSound) change.mutate(bytes);
  };
  return (
    <form onSubmit={submit}>
      <p className="quiet" style={{ marginTop: 0 }}>
        Now {quotaText(user)}; {bytesText(user.used_bytes)} used, of it {bytesText(user.trash_bytes)} trash.
      </p>
      <TextInput
        label="New quota"
        description="A number with KiB, MiB, GiB or TiB"
        data-autofocus
        value={text}
        error={isSound || text === "" ? undefined : "Write a size, such as 40 GiB"}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <p aria-live="polite">{isSound ? consequence(user, bytes) : ""}</p>
      {change.error === null ? null : <p role="alert">{change.error.message}</p>}
      <div style={{ display: "flex", gap: 8 }}>
        <Button type="submit" disabled={!isSound} loading={change.isPending}>
          Set quota
        </Button>
        {user.quota_source === "explicit" ? (
          <Button variant="default" onClick={() => change.mutate(0n)}>
            Back to the default
          </Button>
        ) : null}
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
      </div>
    </form>
  );
}

function consequence(user: UserRow, bytes: bigint): string {
  const used = BigInt(user.used_bytes);
  const before = bytesText(user.quota_limit);
  if (bytes < used) {
    return `${before} → ${bytesText(bytes.toString())}. That is ${bytesText((used - bytes).toString())} less than is used: nothing is deleted, but no more can be written until enough is removed.`;
  }
  return `${before} → ${bytesText(bytes.toString())}. Then ${bytesText((bytes - used).toString())} are free.`;
}
