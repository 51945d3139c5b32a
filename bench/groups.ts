// The groups of the benchmark in the order of the table; a new group is one module and one line here.
import type { Group } from "./row.ts";
import { cli } from "./rows/cli.ts";
import { grpc } from "./rows/grpc.ts";
import { sessions } from "./rows/sessions.ts";

export const groups: readonly Group[] = [grpc, sessions, cli];
