// Changes one user's quota, with a preview of the effect.
import { Button, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, type SubmitEvent, useState } from "react";
import { parseBytes } from "#base/bytes.ts";
import type { UserRow } from "#wire/webapi/user.ts";
import { useCluster } from "../live/cluster.ts";
import { type QuotaChanged, setQuota } from "../live/users.ts";
import { bytesText } from "../words/number.ts";
import { quotaConsequence } from "../words/quota.ts";

const U64_MAX = (1n << 64n) - 1n;

interface Change {
  readonly before: UserRow;
  readonly quotaBytes: bigint;
}

/** The form for a user. */
export function QuotaEditor({
  user,
  onChanged,
}: {
  readonly user: UserRow;
  readonly onChanged: (changed: QuotaChanged, before: UserRow) => void;
}): ReactNode {
  const { cluster } = useCluster();
  const home = cluster?.nodes.find(({ id }) => id === user.home_node_id);
  // The typed value; undefined shows the current quota.
  const [typed, setTyped] = useState<string>();
  const text = typed ?? bytesText(user.quota_limit);
  const bytes = parseBytes(text);
  const isSound = bytes !== undefined && bytes > 0n && bytes <= U64_MAX;
  // The text of the present quota is rounded: it stands for that quota, and not for what it reads as.
  const isChange =
    isSound && text.trim() !== bytesText(user.quota_limit) && bytes !== BigInt(user.quota_limit);
  const change = useMutation({
    mutationFn: ({ before, quotaBytes }: Change) => setQuota(before.username, quotaBytes),
    // The list may have the new quota by now: undo needs the value at the request.
    onSuccess: (changed, { before }) => {
      setTyped(undefined);
      onChanged(changed, before);
    },
  });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (isChange) change.mutate({ before: user, quotaBytes: bytes });
  };
  if (user.quota_source === "pending") {
    return <p className="quiet">Its home node has not reported yet; the quota can be changed once it has.</p>;
  }
  return (
    <form onSubmit={submit} className="stack">
      <TextInput
        label="New quota"
        description="A number with KiB, MiB, GiB or TiB"
        value={text}
        error={isSound || text === "" ? undefined : "Write a size, such as 40 GiB"}
        onChange={(event) => setTyped(event.currentTarget.value)}
        onFocus={(event) => event.currentTarget.select()}
      />
      <p aria-live="polite" className="quiet consequence">
        {isChange
          ? quotaConsequence(user, bytes, home)
          : isSound
            ? "Write another amount to see what it would do."
            : ""}
      </p>
      {change.error === null ? null : <p role="alert">{change.error.message}</p>}
      <div className="button-row">
        <Button type="submit" disabled={!isChange} loading={change.isPending}>
          Set quota
        </Button>
        {user.quota_source === "explicit" ? (
          <Button
            variant="default"
            loading={change.isPending}
            onClick={() => change.mutate({ before: user, quotaBytes: 0n })}
          >
            Back to the default
          </Button>
        ) : null}
      </div>
    </form>
  );
}
