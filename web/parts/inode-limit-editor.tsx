// Changes a user's inode limit, with a preview of the effect.
import { Button, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, type SubmitEvent, useState } from "react";
import { IDS_PER_ROOT } from "#base/limits.ts";
import type { UserRow } from "#wire/webapi/user.ts";
import { setInodeLimit } from "../live/users.ts";
import { inodeConsequence } from "../words/quota.ts";

/** The form for a user; empty until the home node has reported the limit. */
export function InodeLimitEditor({ user }: { readonly user: UserRow }): ReactNode {
  // The typed value; undefined shows the current limit.
  const [typed, setTyped] = useState<string>();
  const change = useMutation({
    mutationFn: (inodeLimit: number) => setInodeLimit(user.username, inodeLimit),
    onSuccess: () => setTyped(undefined),
  });
  if (user.inode_limit === null || user.quota_source === "pending") return null;
  const text = typed ?? user.inode_limit.toLocaleString();
  const limit = parseCount(text);
  const isChange = limit !== undefined && limit !== user.inode_limit;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (limit !== undefined) change.mutate(limit);
  };
  return (
    <form onSubmit={submit} className="stack">
      <TextInput
        label="Files and folders at most"
        description="Those in the trash count too"
        inputMode="numeric"
        value={text}
        error={limit !== undefined || text === "" ? undefined : "Write a number, such as 20000000"}
        onChange={(event) => setTyped(event.currentTarget.value)}
        onFocus={(event) => event.currentTarget.select()}
      />
      <p aria-live="polite" className="quiet consequence">
        {isChange ? inodeConsequence(user, limit) : ""}
      </p>
      {change.error === null ? null : <p role="alert">{change.error.message}</p>}
      <div className="button-row">
        <Button type="submit" disabled={!isChange} loading={change.isPending}>
          Set limit
        </Button>
        {user.inode_limit_source === "explicit" ? (
          <Button variant="default" onClick={() => change.mutate(0)}>
            Default limit
          </Button>
        ) : null}
      </div>
    </form>
  );
}

/** A positive whole number, with or without thousands separators; undefined for anything else. */
function parseCount(text: string): number | undefined {
  const isWhole = /^\s*(\d{1,10}|\d{1,3}([\s.,'’]\d{3}){1,3})\s*$/.test(text);
  const count = isWhole ? Number(text.replaceAll(/\D/g, "")) : 0;
  return count >= 1 && count <= IDS_PER_ROOT ? count : undefined;
}
