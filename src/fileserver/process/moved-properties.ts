// What goes along with a root besides rows and chunks: quota, person, and what administrators saw of the trash.
import type { MovedProperties } from "#fileserver/moves/move-source.ts";
import type { OperatorLooks } from "#fileserver/operations/operator-looks.ts";
import type { QuotaStore } from "#quota/quota-store.ts";
import type { SubjectRegistry } from "#security/identity/subject-registry.ts";

/** What a node keeps of users beside their roots. */
export interface PropertyDeps {
  readonly quotas: QuotaStore;
  readonly subjects: SubjectRegistry;
  readonly operatorLooks: OperatorLooks;
}

/** What this node keeps of an owner, as it goes along with the root. */
export function propertiesOf(
  owner: string,
  { quotas, subjects, operatorLooks }: PropertyDeps,
): MovedProperties {
  const known = subjects.find(owner);
  const [quota, limit] = [quotas.quotaOf(owner), quotas.inodeLimitOf(owner)];
  return {
    quotaBytes: String(quota.bytes),
    inodeLimit: limit.inodes,
    sources: { quota: quota.source, inodeLimit: limit.source },
    looks: operatorLooks.of(owner),
    ...(known === undefined ? {} : { subject: { ...known, version: String(known.version) } }),
  };
}

/** Keeps what came along, before the root is served; may be repeated. */
export async function takeProperties(
  owner: string,
  { quotaBytes, inodeLimit, sources, subject, looks }: MovedProperties,
  { quotas, subjects, operatorLooks }: PropertyDeps,
): Promise<void> {
  const quota = { bytes: BigInt(quotaBytes), source: sources?.quota ?? "default" };
  await quotas.take(owner, quota, { inodes: inodeLimit, source: sources?.inodeLimit ?? "default" });
  await operatorLooks.take(owner, looks);
  if (subject === undefined) return;
  // What this node knows of the address counts, unless an operator's word came later.
  const word = { username: owner, ...subject, version: BigInt(subject.version) };
  await subjects.rebind([word], () => true);
}
