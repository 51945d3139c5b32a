// The one comparison of secrets, in constant time (C-12).
import { createHash, timingSafeEqual } from "node:crypto";

/** True for equal bytes; hashing both first hides content and length from the time taken. */
export function constantTimeEqual(a: string | Uint8Array, b: string | Uint8Array): boolean {
  return timingSafeEqual(createHash("sha256").update(a).digest(), createHash("sha256").update(b).digest());
}
