// How much of a door's pages one user can take; docs/budgets.md has the table.

/** Requests of pages that are answered at once. */
export const PAGE_REQUESTS = 256;
/** Those of one user among them: a browser has six connections, or streams of one. */
export const PAGE_REQUESTS_PER_USER = 24;
/** Requests that wait for such a place, their bodies unread. */
export const PAGE_WAITING = 1_024;
/** Waiting requests of one user. */
export const PAGE_WAITING_PER_USER = 128;
/** Archives of one user at once, which count as requests too. */
export const ARCHIVES_PER_USER = 2;
/** Searches of one user at once, which count as requests too. */
export const SEARCHES_PER_USER = 2;
/** Files and folders whose names one search compares. */
export const SEARCH_ENTRIES_MAX = 50_000;
/** Folders that one search reads. */
export const SEARCH_FOLDERS_MAX = 5_000;
/** Names that one search finds. */
export const SEARCH_FOUND_MAX = 500;
/** Characters that are searched for. */
export const SEARCH_TEXT_MAX_LENGTH = 255;
