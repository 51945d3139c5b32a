// Calls of the console's API: JSON in and out; a refusal becomes an ApiProblem with the console's sentence.
import type { Problem } from "#wire/webapi/problem.ts";
import { sentence } from "../words/sentence.ts";

/** A refusal of the console, or status 0 for no answer. */
export class ApiProblem extends Error {
  override readonly name = "ApiProblem";
  readonly status: number;
  readonly problem: Problem | undefined;

  constructor(status: number, message: string, problem?: Problem) {
    super(message);
    this.status = status;
    this.problem = problem;
  }
}

/** Options of a call. */
export interface CallOptions {
  readonly method?: "GET" | "POST" | "PUT" | "DELETE";
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

type Refused = (problem: ApiProblem) => void;
let onRefused: Refused | undefined;

/** Registers a listener for 401 answers, by which the frame shows the session's end. */
export function watchRefusals(listener: Refused): void {
  onRefused = listener;
}

/** Calls a path of the console. Throws ApiProblem. */
export async function call<T>(path: string, options: CallOptions = {}): Promise<T> {
  const { method = "GET", body, signal } = options;
  let answer: Response;
  try {
    answer = await fetch(path, {
      method,
      headers: body === undefined ? {} : { "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
  } catch (cause) {
    if (signal?.aborted === true) throw cause;
    throw new ApiProblem(0, "The console does not answer. Is this machine on the network?");
  }
  if (answer.ok) return (await answer.json()) as T;
  const problem = await readProblem(answer);
  const refusal = new ApiProblem(
    answer.status,
    sentence(problem?.detail ?? `The console answered ${answer.status} without saying why.`),
    problem,
  );
  if (answer.status === 401) onRefused?.(refusal);
  throw refusal;
}

async function readProblem(answer: Response): Promise<Problem | undefined> {
  if (answer.headers.get("content-type")?.startsWith("application/problem+json") !== true) return undefined;
  return (await answer.json().catch(() => undefined)) as Problem | undefined;
}
