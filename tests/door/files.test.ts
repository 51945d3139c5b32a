// Tests of the page for files in Chromium at one door, whose parts lie in the files that this one names.
import "./files-views.ts";
import "./files-page.ts";
import "./files-uploads.ts";
import "./files-sessions.ts";
import "./files-shows.ts";
