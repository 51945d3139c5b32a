// An nginx with its WebDAV modules, on a tmpfs and with settings that its documentation names.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "#testing/free-ports.ts";
import { inPath, listens, mustBeThere } from "./installed.ts";
import type { Lab } from "./lab.ts";
import { certificateFolder, type Security } from "./pair.ts";

const DAV_EXT = "/usr/lib/nginx/modules/ngx_http_dav_ext_module.so";

/** An nginx that serves. */
export interface Nginx {
  readonly program: string;
  readonly pid: number;
  readonly port: number;
}

/** Starts it on a folder of its own. Throws where nginx or its module is not installed. */
export async function startNginx(lab: Lab, security: Security): Promise<Nginx> {
  const program = inPath("nginx");
  mustBeThere(DAV_EXT);
  const folder = await lab.folder("memory");
  await mkdir(join(folder, "files"));
  const port = await freePort();
  const config = join(folder, "nginx.conf");
  const certificates = security === "plain" ? undefined : await certificateFolder(lab);
  await writeFile(config, configuration(folder, port, certificates));
  const { pid } = await lab.service([program, "-e", join(folder, "error.log"), "-p", folder, "-c", config], {
    isUp: () => listens(port),
  });
  return { program, pid, port };
}

function configuration(folder: string, port: number, certificates: string | undefined): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `  ${name}_temp_path ${folder}/${name};`,
  );
  const tls =
    certificates === undefined
      ? []
      : [
          `    ssl_certificate ${certificates}/server.crt;`,
          `    ssl_certificate_key ${certificates}/server.key;`,
          "    ssl_protocols TLSv1.2 TLSv1.3;",
        ];
  const user = process.getuid?.() === 0 ? ["user root;"] : [];
  return [
    `load_module ${DAV_EXT};`,
    ...user,
    "daemon off;",
    "worker_processes auto;",
    `pid ${folder}/pid;`,
    "events { worker_connections 512; }",
    "http {",
    ...temporary,
    "  access_log off;",
    "  sendfile on;",
    "  tcp_nopush on;",
    "  client_max_body_size 0;",
    "  keepalive_requests 1000000;",
    `  server { listen 127.0.0.1:${port}${certificates === undefined ? "" : " ssl"}; root ${folder}/files;`,
    ...tls,
    "    location / { dav_methods PUT DELETE MKCOL COPY MOVE; dav_ext_methods PROPFIND OPTIONS; }",
    "  }",
    "}",
    "",
  ].join("\n");
}
