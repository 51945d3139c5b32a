// Polls the metadata store every 10 s for security events of MetaServers and raises alerts (spec 5.7, D22).
import type { Clock } from "#base/clock.ts";
import { ADDRESS_REREAD_INTERVAL_MS } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { SecurityEventFeed } from "#console/cluster/security-event-feed.ts";
import type { DirectoryReader } from "#metaserver/directory/directory.ts";
import type { AlertService } from "./alert-service.ts";

/** Dependencies of the poll. */
export interface MetaServerEventsDeps {
  readonly directory: Pick<DirectoryReader, "securityReports">;
  readonly alerts: Pick<AlertService, "attemptsAt">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Begins to poll; the returned function ends it. Another alert covers a store that does not answer. */
export function watchMetaServers({ directory, alerts, clock, log }: MetaServerEventsDeps): () => void {
  const feeds = new Map<string, SecurityEventFeed>();
  let isReading = false;
  const read = async (): Promise<void> => {
    if (isReading) return;
    isReading = true;
    try {
      const reports = await directory.securityReports();
      const news = new Map<string, ReturnType<SecurityEventFeed["take"]>>();
      for (const { source, document } of reports) {
        const feed = feeds.get(source) ?? new SecurityEventFeed();
        feeds.set(source, feed);
        news.set(source, newsIn(feed, document));
      }
      for (const source of feeds.keys()) if (!news.has(source)) feeds.delete(source);
      alerts.attemptsAt(news);
    } catch (error) {
      log.debug("security_events_unread", { error: errorText(error) });
    } finally {
      isReading = false;
    }
  };
  const cancel = clock.every(ADDRESS_REREAD_INTERVAL_MS, () => void read());
  void read();
  return cancel;
}

/** Reads one MetaServer's report; an invalid one does not affect the others. */
function newsIn(feed: SecurityEventFeed, document: string): ReturnType<SecurityEventFeed["take"]> {
  try {
    return feed.take(Buffer.from(document));
  } catch {
    return [];
  }
}
