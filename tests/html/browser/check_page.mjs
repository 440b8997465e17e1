// Opens pages in a headless Chromium, at several widths and in both themes, and checks each: nothing is fetched, nothing
// is wider than the window, no script but the page's own runs, axe-core finds nothing. Prints a JSON list of findings.
//
//     node check_page.mjs NODE_MODULES CHROMIUM PICTURES PAGE...
//
// PICTURES is a directory for screenshots; empty: none are made.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import path from "node:path";

const [modules, chromium, pictures, ...pages] = process.argv.slice(2);
const require = createRequire(path.join(modules, "x.js"));
const puppeteer = require("puppeteer-core");
const { HtmlValidate } = require("html-validate");
const axe = readFileSync(path.join(modules, "axe-core/axe.min.js"), "utf8");

const WIDTHS = [390, 820, 1400];
const findings = [];

function find(page, where, what) {
  findings.push({ page: path.basename(page), where, what });
}

async function checkView(tab, page, width, theme, withScript) {
  const where = `${width} px, ${theme}, ${withScript ? "scripts" : "no scripts"}`;
  const requests = [];
  const seen = (request) => requests.push(request.url());
  const failed = (error) => find(page, where, `script error: ${error.message}`);
  const told = (message) => message.type() === "error" && find(page, where, `console: ${message.text()}`);
  tab.on("request", seen).on("pageerror", failed).on("console", told);
  await tab.setJavaScriptEnabled(withScript);
  await tab.setViewport({ width, height: 900 });
  await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
  await tab.goto(`file://${page}`, { waitUntil: "load" });
  tab.off("request", seen).off("pageerror", failed).off("console", told);
  for (const each of requests.slice(1)) find(page, where, `a request: ${each}`);
  if (pictures) {
    const name = `${path.basename(page, ".html")}-${width}-${theme}${withScript ? "" : "-plain"}.png`;
    await tab.screenshot({ path: path.join(pictures, name), fullPage: true });
  }
  if (!withScript) return;
  const narrow = await tab.evaluate(() => [...document.querySelectorAll(".value, td, th")].filter((each) => {
    const box = each.getBoundingClientRect();
    return box.height > 120 && box.width < 60;
  }).map((each) => each.textContent.slice(0, 80)));
  for (const each of narrow) find(page, where, `squeezed into a narrow column: ${each}`);
  const [wide, back] = await tab.evaluate(() => [
    document.documentElement.scrollWidth - innerWidth,
    getComputedStyle(document.body).backgroundColor,
  ]);
  if (wide > 0) find(page, where, `the page is ${wide} px wider than the window`);
  const isDark = back.match(/\d+/g).slice(0, 3).every((each) => Number(each) < 100);
  if (isDark !== (theme === "dark")) find(page, where, `the background is ${back}`);
  await checkAccess(tab, page, where);
}

async function checkAccess(tab, page, where) {
  // What is closed is checked, too.
  await tab.evaluate(() => document.querySelectorAll("details").forEach((each) => (each.open = true)));
  await tab.evaluate(axe);
  const found = await tab.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  for (const each of found.violations) {
    const nodes = each.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 200)} ${node.failureSummary}`);
    find(page, where, `axe ${each.id} (${each.nodes.length}): ${nodes.join(" | ")}`);
  }
}

async function checkKeys(tab, page) {
  // All that a mouse can reach must be reached with Tab, and what is focused must be seen.
  const where = "keyboard";
  await tab.setJavaScriptEnabled(true);
  await tab.goto(`file://${page}`);
  const wanted = await tab.evaluate(() => {
    const all = document.querySelectorAll("a[href], button, summary, [tabindex='0']");
    return [...all].filter((each) => each.checkVisibility()).length;
  });
  const reached = new Set();
  for (let press = 0; press < wanted + 5; press++) {
    await tab.keyboard.press("Tab");
    reached.add(await tab.evaluate(() => {
      const at = document.activeElement;
      return at === document.body ? "" : `${[...document.querySelectorAll("*")].indexOf(at)}`;
    }));
  }
  reached.delete("");
  if (reached.size < wanted) find(page, where, `${reached.size} of ${wanted} places are reached with Tab`);
}

async function checkMarkup(page) {
  const validate = new HtmlValidate({
    extends: ["html-validate:recommended", "html-validate:a11y"],
    // Style only: how a doctype is written, how long a title is, where white space is.
    rules: { "doctype-style": "off", "long-title": "off", "no-trailing-whitespace": "off" },
  });
  const report = await validate.validateFile(page);
  for (const result of report.results) {
    for (const each of result.messages.slice(0, 20)) {
      find(page, `line ${each.line}:${each.column}`, `html-validate ${each.ruleId}: ${each.message}`);
    }
  }
}

const browser = await puppeteer.launch({ executablePath: chromium, headless: true, args: ["--no-sandbox"] });
try {
  for (const page of pages) {
    await checkMarkup(page);
    for (const width of WIDTHS) {
      for (const theme of ["light", "dark"]) {
        const tab = await browser.newPage();
        // axe is a foreign script, which the page's own policy forbids.
        await tab.setBypassCSP(false);
        await checkView(tab, page, width, theme, true);
        await tab.close();
      }
    }
    const tab = await browser.newPage();
    await checkView(tab, page, WIDTHS[1], "light", false);
    await checkKeys(tab, page);
    await tab.close();
  }
} finally {
  await browser.close();
}
console.log(JSON.stringify(findings));
