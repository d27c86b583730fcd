// What the dashboard must do, in a real browser. Each check is one line of output; the first that fails ends it all.
// ONLY=words runs those whose names hold the words.
import assert from "node:assert/strict";

import { Browser, assertSound, focused } from "./browser.mjs";
import { GAPS, sick } from "./sick.mjs";
import { Site, TOKEN, until } from "./site.mjs";

const [binary, work, pictures] = process.argv.slice(2);
const DRESSES = [["light", 1280], ["dark", 1280], ["light", 360], ["dark", 360]];
const checks = [];
const check = (name, act) => checks.push([name, act]);

check("a person gets in with the token, stays in over a reload, and out again; no cookie is set", async ({ browser }) => {
  const page = await browser.open({ token: null });
  await page.locator("#login").waitFor();
  assert.equal(await page.locator("#main").isVisible(), false);
  assert.equal(await page.evaluate(() => document.activeElement.id), "token");
  await page.keyboard.type("a wrong one");
  await page.keyboard.press("Enter");
  await page.getByText("That is not the token.").waitFor();
  await assertSound(page, "the login");
  await browser.picture(page, "login");
  await page.keyboard.type(TOKEN);
  await page.keyboard.press("Enter");
  await page.locator("#streams .card").first().waitFor();
  assert.deepEqual(await page.context().cookies(), []);
  await page.reload();
  await page.locator("#streams .card").first().waitFor();
  await page.getByRole("button", { name: "Forget the token" }).click();
  await page.locator("#login").waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.getItem("sierra-sync-token")), null);
  assert.deepEqual(page.complaints, []);
  await browser.leave(page);
});

for (const [scheme, width] of DRESSES) {
  check(`well, ${scheme}, ${width} px: no error, no outside request, no serious finding, nothing too wide`, async ({ browser }) => {
    const page = await browser.look({ scheme, width });
    await page.locator("#runs table").waitFor();
    await assertSound(page, `${scheme} ${width}`);
    await browser.picture(page, `well-${scheme}-${width}`);
    assert.equal(await page.title(), "sierra-sync");
    assert.match(await page.locator("#sentence").innerText(), /All streams are fresh/);
    await browser.leave(page);
  });
}

check("the page lives without being loaded again", async ({ browser }) => {
  const page = await browser.look();
  await page.evaluate(() => { window.sameDocument = true; });
  const watermark = async () => (await page.locator("#streams .card .quiet").first().innerText()).match(/up to (\S+)/)?.[1];
  const newestRun = () => page.locator("#runs tbody tr").first().innerText();
  const [upTo, run] = [await watermark(), await newestRun()];
  assert.ok(upTo, "the watermark is told");
  await until("a newer watermark", async () => (await watermark()) !== upTo);
  await until("a newer run", async () => (await newestRun()) !== run);
  assert.equal(await page.evaluate(() => window.sameDocument), true);
  await browser.leave(page);
});

check("everything is reached by keyboard, and the focus is seen", async ({ browser }) => {
  const page = await browser.look();
  await page.locator("#runs table").waitFor();
  const reached = new Set();
  for (let step = 0; step < 120; step += 1) {
    await page.keyboard.press("Tab");
    const focus = await focused(page);
    // Nothing has the focus between the last stop and the first.
    if (focus === null) continue;
    if (/Skip to the streams/.test(focus.name) && reached.size > 0) break;
    assert.ok(focus.isSeen, `focus is seen on ${focus.name}`);
    reached.add(focus.name);
  }
  const names = [...reached].join("\n");
  for (const wanted of [/Skip to the streams/, /Sync now: bibs/, /Pause stream items/, /Pause sink marcxml/, /^Lag of bibs over/m, /Changes waiting for archive/, /Calls left in this window/, /Hold calls/, /Recover from/, /^The last \d+ entr/m, /Forget the token/]) assert.match(names, wanted);
  await browser.leave(page);
});

check("a table keeps the focus when it is drawn again", async ({ browser }) => {
  const page = await browser.look();
  const table = page.locator("#runs .scroll");
  await table.focus();
  const drawn = await page.locator("#runs").getAttribute("data-key");
  await until("a newer table", async () => (await page.locator("#runs").getAttribute("data-key")) !== drawn);
  assert.match((await focused(page))?.name ?? "nothing", /^The last \d+ entr/);
  await browser.leave(page);
});

check("charts are read by keyboard, and a dialog lets go", async ({ browser }) => {
  const page = await browser.look();
  await page.locator("#streams .chart svg").first().focus();
  await page.keyboard.press("ArrowLeft");
  assert.match(await page.locator("#streams .reading").first().innerText(), /\d\d:\d\d:\d\d/);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#streams .reading").first().isVisible(), false);
  await page.getByRole("button", { name: "Pause sink marcxml" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.id), "ask-reason");
  await assertSound(page, "the dialog");
  await browser.picture(page, "dialog");
  await page.keyboard.press("Escape");
  assert.equal(await page.getByRole("dialog").isVisible(), false);
  assert.match((await focused(page)).name, /Pause sink marcxml/);
  await browser.leave(page);
});

check("a sink is paused and resumed, calls are halted and let go, with reasons, from the page", async ({ browser, site }) => {
  const page = await browser.look();
  const tone = () => page.locator("#verdict").getAttribute("data-tone");
  await page.getByRole("button", { name: "Pause sink marcxml" }).click();
  await page.keyboard.type("the disk is changed");
  await page.keyboard.press("Enter");
  await until("the reason", async () => (await page.locator("#sinks").innerText()).includes("the disk is changed"));
  await until("the sentence", async () => (await page.locator("#sentence").innerText()).includes("sierra-sync resume --sink marcxml"));
  assert.equal((await site.ask("/status")).sinks.marcxml.state, "paused");
  await page.getByRole("button", { name: "Hold calls to Sierra" }).click();
  await page.keyboard.type("Sierra is upgraded <b>tonight</b>");
  await page.locator("#ask-minutes").selectOption("30");
  await page.locator("#ask-do").click();
  await until("the halt", async () => (await tone()) === "warn");
  await page.locator("#breaker-spells", { hasText: "Sierra is upgraded <b>tonight</b>" }).waitFor();
  assert.equal(await page.locator("#breaker-spells b").count(), 0, "what people write is text");
  assert.match(await page.title(), /^degraded/);
  await until("what was done", async () => (await page.locator("#deeds").innerText()).includes("breaker open"));
  await assertSound(page, "halted");
  await browser.picture(page, "halted");
  for (const name of ["Let calls go to Sierra", "Resume sink marcxml"]) {
    await page.getByRole("button", { name }).click();
    await page.locator("#ask-do").click();
    await page.getByRole("dialog").waitFor({ state: "hidden" });
  }
  await until("calls to pass", async () => (await site.ask("/status")).breaker.state === "closed");
  // What failed while calls were halted rests a minute before it is tried again, unless it is asked for like this.
  for (const stream of ["bibs", "items"]) {
    await page.getByRole("button", { name: `Sync now: ${stream}` }).click();
    await page.locator("#ask-do").click();
    await page.locator("#toast", { hasText: `A pass over ${stream}` }).waitFor();
  }
  await until("wellness", async () => (await tone()) === "ok");
  assert.deepEqual(page.complaints, []);
  await browser.leave(page);
});

check("what the configuration pauses is not offered to be resumed, and what cannot bear the token is no link", async ({ browser }) => {
  const byConfig = (status) => { status.sinks.marcxml.state = "paused"; status.sinks.marcxml.paused = null; return status; };
  const page = await browser.look({ doctor: byConfig });
  await page.getByText("Paused by the configuration").waitFor();
  await page.getByRole("button", { name: "Pause sink archive" }).waitFor();
  assert.equal(await page.getByRole("button", { name: /sink marcxml/ }).count(), 0);
  assert.match(await page.locator("footer").innerText(), /\/status, \/metrics and \/history, bearing the token/);
  assert.equal(await page.locator("footer a").count(), 0);
  await browser.leave(page);
});

check("what was set aside is replayed from the page", async ({ browser }) => {
  const aside = (status) => { status.quarantine.bibs = status.streams.bibs.quarantined = 3; return status; };
  const page = await browser.look({ doctor: aside });
  assert.match(await page.locator("#aside").innerText(), /3 records of bibs set aside/);
  await page.getByRole("button", { name: "Replay what was set aside of bibs" }).click();
  await page.locator("#ask-do").click();
  // The service knows better.
  await page.locator("#toast", { hasText: "nothing was set aside that can be replayed" }).waitFor();
  await until("what was done", async () => (await page.locator("#deeds").innerText()).includes("quarantine replay --stream bibs"));
  assert.deepEqual(page.complaints, []);
  await browser.leave(page);
});

for (const [scheme, width] of DRESSES) {
  check(`ill, ${scheme}, ${width} px: ${GAPS + 1} gaps and every alert at once`, async ({ browser }) => {
    const page = await browser.look({ scheme, width, doctor: sick });
    await page.locator("#gaps .more").waitFor();
    const rows = () => page.locator("#gaps tbody tr").count();
    assert.equal(await rows(), 12);
    await assertSound(page, `ill, ${scheme} ${width}`);
    await browser.picture(page, `ill-${scheme}-${width}`);
    await page.locator("#gaps .more").focus();
    await page.keyboard.press("Enter");
    assert.equal(await rows(), GAPS + 1);
    assert.match((await focused(page)).name, /Show fewer/);
    assert.equal(await page.locator("img").count(), 0, "an error is text");
    assert.equal(await page.getByRole("progressbar").getAttribute("aria-valuenow"), "41");
    assert.match((await page.locator("#verdict code").allInnerTexts()).join(" "), /sierra-sync resume --stream bibs/);
    const aside = await page.locator("#aside").innerText();
    assert.match(aside, /1,234 records of bibs/);
    assert.match(aside, /stream bibs met a defect and was started again, 3 times/);
    await assertSound(page, `ill and open, ${scheme} ${width}`);
    await browser.leave(page);
  });
}

check("hundreds of gaps stay open, and a look at them is quick", async ({ browser }) => {
  const page = await browser.look({ doctor: sick });
  await page.locator("#gaps .more").click();
  const pulse = () => page.locator("#pulse-text").innerText();
  const before = await pulse();
  await until("another look", async () => (await pulse()) !== before);
  assert.equal(await page.locator("#gaps tbody tr").count(), GAPS + 1);
  // The quickest of some looks: a busy machine makes each of them slower than it is.
  const quickest = await page.evaluate(async () => {
    const looks = [];
    for (let look = 0; look < 3; look += 1) {
      const long = [];
      const observer = new PerformanceObserver((list) => long.push(...list.getEntries().map(({ duration }) => duration)));
      observer.observe({ type: "longtask" });
      await new Promise((done) => setTimeout(done, 2500));
      observer.disconnect();
      looks.push(Math.max(0, ...long));
    }
    return Math.min(...looks);
  });
  assert.ok(quickest < 400, `a look takes ${quickest} ms`);
  await browser.leave(page);
});

check("a service that goes is told of; when it comes again the page goes on, and the day is still there", async ({ browser, site }) => {
  const page = await browser.look();
  await page.evaluate(() => { window.sameDocument = true; });
  const tone = () => page.locator("#verdict").getAttribute("data-tone");
  const gone = Date.now() / 1000;
  assert.equal(await site.stop(), 0, site.service.said);
  await until("the bad news", async () => (await tone()) === "bad");
  assert.match(await page.locator("#sentence").innerText(), /does not answer/);
  await browser.picture(page, "gone");
  site.start();
  await until("the good news", async () => (await tone()) === "ok");
  assert.equal(await page.evaluate(() => window.sameDocument), true);
  const after = await site.ask("/history");
  assert.ok(after.samples.length >= 1 && after.runs.length >= 1, `${after.samples.length} samples and ${after.runs.length} runs are known`);
  assert.ok(after.samples[0].t <= gone, `the oldest sample is of ${after.samples[0].t}, the end was at ${gone}`);
  // What the browser itself says of an address where nobody listens.
  const others = page.complaints.filter((text) => !/net::ERR_(CONNECTION|EMPTY_RESPONSE|INCOMPLETE)/.test(text));
  assert.deepEqual(others, []);
  await browser.leave(page);
});

check("what people did is remembered, and the token is in no log", async ({ site }) => {
  const { actions } = await site.ask("/history");
  const commands = actions.map(({ command }) => command);
  for (const wanted of ["pause --sink marcxml", "breaker open", "breaker close", "resume --sink marcxml", "sync now bibs"]) assert.ok(commands.includes(wanted), `${wanted} in ${commands}`);
  assert.equal(await site.stop(), 0, site.service.said);
  assert.ok(!site.service.said.includes(TOKEN));
});

const started = Date.now();
const say = (sentence) => console.log(`ok ${((Date.now() - started) / 1000).toFixed(1).padStart(5)}s  ${sentence}`);
const site = await Site.open(binary, work);
try {
  const browser = await Browser.launch(site.origin, pictures);
  say("the service has loaded a library that lives on");
  for (const [name, act] of checks.filter(([name]) => name.includes(process.env.ONLY ?? ""))) {
    try {
      await act({ browser, site });
    } catch (error) {
      console.error(`FAILED  ${name}`);
      throw error;
    }
    say(name);
  }
  await browser.close();
} finally {
  site.close();
}
