// A malformed message is the sender's fault: the node's error rate and warnings do not show it (T4).
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:http2";
import { test } from "node:test";
import { type LogFields, silentLogger } from "#base/log.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { startTestNode } from "./node.fixture.ts";

const TIMEOUT = { timeout: 60_000 };

test(
  "garbage from somebody with a session counts as no error of the node, in every kind of call",
  TIMEOUT,
  async (t) => {
    const warned: unknown[] = [];
    const warn = (event: string, fields?: LogFields): void => void warned.push([event, fields]);
    const log = { ...silentLogger, warn, error: warn, child: () => log };
    const running = await startTestNode({ log });
    t.after(() => running.stop());
    const { token } = await running.signIn("u@example.com");
    const session = connect(`http://${running.address}`);
    t.after(() => session.close());
    warned.length = 0;
    const send = async (method: string, bytes: readonly number[]): Promise<string> => {
      const stream = session.request({
        ":method": "POST",
        ":path": `/${FileServer.typeName}/${method}`,
        "content-type": "application/grpc",
        "grpc-encoding": "gzip",
        te: "trailers",
        authorization: `Bearer ${token}`,
      });
      let status: unknown;
      stream.on("response", (headers) => (status ??= headers["grpc-status"]));
      stream.on("trailers", (headers) => (status ??= headers["grpc-status"]));
      stream.resume().end(Buffer.from(bytes));
      await once(stream, "close");
      return String(status);
    };
    const noMessage = [0, 0, 0, 0, 3, 255, 255, 255];
    const noGzip = [1, 0, 0, 0, 3, 1, 2, 3];
    const cutOff = [0, 0, 0, 0, 9, 1];
    const noFlag = [7, 0, 0, 0, 0];
    for (const method of ["UploadFile", "DownloadFile", "GetAttr"]) {
      for (const bytes of [noMessage, noGzip, cutOff, noFlag]) {
        assert.equal(await send(method, bytes), "3", `${method} ${bytes.join()}`);
      }
    }
    const metrics = await fetch(`http://127.0.0.1:${running.node.metricsPort}/metrics`);
    const { errors_total: errors, failed_writes_total: failedWrites } = (await metrics.json()) as Record<
      string,
      number
    >;
    assert.deepEqual([errors, failedWrites, warned], [0, 0, []]);
  },
);
