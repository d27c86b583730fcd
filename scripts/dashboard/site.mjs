// A library that lives on, and the service that follows it: what the browser looks at.
import { spawn } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const TOKEN = "open-sesame-for-the-test";
const SECRET = { SIERRA_SYNC__SIERRA__CLIENT_SECRET: "simulator-secret" };

// Looks again and again until there is something to see. The machine may be slow: only a defect takes so long.
export async function until(what, look, patience = 120_000) {
  const deadline = Date.now() + patience;
  for (;;) {
    const seen = await look();
    if (seen) return seen;
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

const config = (base, listen) => `config_version = 1
[sierra]
base_url = "${base}"
client_key = "simulator-key"
[streams.bibs]
interval = "1s"
deleted_interval = "5s"
settle = "0s"
[streams.items]
interval = "1s"
deleted_interval = "5s"
settle = "0s"
[sinks.archive]
type = "file"
path = "./out"
format = "ndjson"
streams = ["bibs", "items"]
[sinks.marcxml]
type = "file"
path = "./xml"
format = "marcxml"
streams = ["bibs"]
[ops]
listen = "${listen}"
token_file = "./token"
`;

export class Site {
  // Serves a library and starts a service over it in the directory `work`; resolves once everything is loaded.
  static async open(binary, work) {
    const site = new Site();
    Object.assign(site, { binary, work });
    writeFileSync(join(work, "token"), TOKEN);
    chmodSync(join(work, "token"), 0o600);
    site.simulator = site.#spawn(["simulate", "--bibs", "300", "--items", "200", "--life", "400", "--rate-limit", "3000/120", "--json"]);
    const told = await until("the simulator", () => site.simulator.said.split("\n").find((line) => line.startsWith("{") && line.endsWith("}")));
    const base = JSON.parse(told).base_url;
    writeFileSync(join(work, "sierra-sync.toml"), config(base, "127.0.0.1:0"));
    site.start();
    const address = await until("the service", () => site.service.said.match(/"address":"([^"]+)"/)?.[1]);
    // When it is started again it is found where it was.
    writeFileSync(join(work, "sierra-sync.toml"), config(base, address));
    site.origin = `http://${address}`;
    await until("the first load", async () => Object.values((await site.ask("/status")).streams).every((stream) => stream.state === "ok"));
    return site;
  }

  #spawn(args) {
    const child = spawn(this.binary, args, { cwd: this.work, stdio: ["ignore", "pipe", "pipe"], env: { PATH: process.env.PATH, ...SECRET } });
    child.said = "";
    for (const out of [child.stdout, child.stderr]) out.on("data", (data) => { child.said += data; });
    return child;
  }

  start() {
    this.service = this.#spawn(["run", "--log-format", "json"]);
  }

  // Asks it to stop, and tells the exit code.
  async stop() {
    const ended = new Promise((done) => this.service.once("exit", done));
    this.service.kill("SIGTERM");
    return ended;
  }

  async ask(path) {
    return (await fetch(this.origin + path, { headers: { Authorization: `Bearer ${TOKEN}` } })).json();
  }

  close() {
    this.service.kill("SIGKILL");
    this.simulator.kill("SIGKILL");
  }
}
