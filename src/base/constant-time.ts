// The one comparison of secrets: takes the same time whatever differs (C-12).
import { createHash, timingSafeEqual } from "node:crypto";

/** True when both are the same bytes; both are hashed first, so that neither content nor length shows in the time taken. */
export function constantTimeEqual(a: string | Uint8Array, b: string | Uint8Array): boolean {
  return timingSafeEqual(createHash("sha256").update(a).digest(), createHash("sha256").update(b).digest());
}
