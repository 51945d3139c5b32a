// Tests of other people's programs at one door, whose parts lie in the files that this one names.
import "./known-programs.ts";
import "./recorded-clients.ts";
import "./foreign-attacks.ts";
