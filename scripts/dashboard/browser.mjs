// Pages in a real Chromium, and what is wrong with them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

import { TOKEN } from "./site.mjs";

const require = createRequire(import.meta.url);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export class Browser {
  // `pictures` is a directory for screenshots, or empty.
  static async launch(origin, pictures) {
    const browser = new Browser();
    Object.assign(browser, { origin, pictures });
    browser.chromium = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    });
    return browser;
  }

  // A page that keeps what it complains about in `complaints`. `doctor` alters each status on its way to the page.
  async open({ scheme = "light", width = 1280, height = 900, token = TOKEN, doctor } = {}) {
    const context = await this.chromium.newContext({ colorScheme: scheme, viewport: { width, height }, serviceWorkers: "block" });
    context.setDefaultTimeout(120_000);
    if (token) await context.addInitScript((token) => { if (!sessionStorage.getItem("sierra-sync-token")) sessionStorage.setItem("sierra-sync-token", token); }, token);
    const page = await context.newPage();
    page.complaints = [];
    page.on("console", (message) => { if (message.type() === "error") page.complaints.push(message.text()); });
    page.on("pageerror", (error) => page.complaints.push(String(error)));
    page.on("request", (request) => { if (!request.url().startsWith(this.origin) && !request.url().startsWith("data:")) page.complaints.push(`asked for ${request.url()}`); });
    if (doctor) {
      await page.route("**/status", async (route) => {
        const answer = await route.fetch();
        await route.fulfill({ response: answer, json: doctor(await answer.json()) });
      });
    }
    await page.goto(this.origin);
    return page;
  }

  // A page that is drawn.
  async look(options) {
    const page = await this.open(options);
    await page.locator("#streams .card").first().waitFor();
    return page;
  }

  // An answer may be on its way to the page still.
  async leave(page) {
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await page.context().close();
  }

  async picture(page, name) {
    if (this.pictures) await page.screenshot({ path: join(this.pictures, `${name}.png`), fullPage: true });
  }

  async close() {
    await this.chromium.close();
  }
}

// Asserts that nothing went wrong on the page, that axe finds nothing serious, and that nothing is too wide. The policy keeps
// eval out, as it must: axe comes in through the debugger instead.
export async function assertSound(page, what) {
  assert.deepEqual(page.complaints, [], what);
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axe });
  const { result } = await session.send("Runtime.evaluate", { expression: `(${violations})()`, awaitPromise: true });
  await session.detach();
  assert.deepEqual(JSON.parse(result.value), [], what);
  const surplus = await page.evaluate(() => document.scrollingElement.scrollWidth - innerWidth);
  assert.ok(surplus <= 0, `${what}: ${surplus} px too wide`);
}

// Runs inside the page.
async function violations() {
  const grave = ({ impact }) => ["serious", "critical"].includes(impact);
  const where = ({ html, any }) => `${html} ${any[0]?.message ?? ""}`;
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return JSON.stringify(found.violations.filter(grave).map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(where).join(" | ")}`));
}

// The name of what has the focus, as a screen reader would say it, and whether the focus is seen; null for nothing.
export const focused = (page) => page.evaluate(() => {
  const node = document.activeElement;
  if (node === document.body) return null;
  const { outlineStyle, outlineWidth } = getComputedStyle(node);
  return { name: node.getAttribute("aria-label") ?? node.textContent.trim(), isSeen: outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 };
});
