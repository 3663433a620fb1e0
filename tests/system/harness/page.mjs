// Opens a report in headless Chromium without network, and prints what it sees as JSON.
// Usage: node page.mjs PLAYWRIGHT CHROMIUM PAGE FOLDER. Screenshots and the printed page go to FOLDER.

import { createRequire } from "node:module";

const [playwright, executablePath, page_path, folder] = process.argv.slice(2);
const { chromium } = createRequire(import.meta.url)(playwright);

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const seen = { errors: [], requests: [] };
try {
  const context = await browser.newContext({ offline: true, viewport: { width: 1100, height: 900 } });
  const page = await context.newPage();
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) seen.errors.push(message.text()); });
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("request", (request) => seen.requests.push(request.url()));
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto(`file://${page_path}`);
  seen.charts = await page.locator("[data-chart]").count();
  seen.drawn = await page.locator(".drawn > div > svg").count();
  seen.plain = await page.locator("[data-chart] svg.tonari-chart").count();
  seen.tables = await page.locator("figure table").count();
  seen.labels = await page.locator("[data-chart]").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
  seen.headings = await page.locator("h1,h2,h3").evaluateAll((all) => all.map((one) => Number(one.tagName[1])));
  seen.alerted = await page.evaluate(() => window.alerted === true);
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  seen.light = await back();
  await page.screenshot({ path: `${folder}/light.png`, fullPage: true });

  // Only the keyboard: the first element is the link that skips, and each chart and each table is reached.
  seen.focused = [];
  for (let i = 0; i < 400; ++i) {
    await page.keyboard.press("Tab");
    const name = await page.evaluate(() => {
      const { activeElement: one } = document;
      return one === document.body ? null : one.className.split(" ")[0] || one.tagName;
    });
    if (name === null) break;
    seen.focused.push(name);
  }
  if (seen.drawn > 0) {
    const chart = page.locator("[data-chart]").first();
    await chart.focus();
    const before = await chart.innerHTML();
    await page.keyboard.press("+");
    await page.waitForFunction(([one, html]) => one.innerHTML !== html, [await chart.elementHandle(), before]);
    await page.keyboard.press("0");
  }
  await page.emulateMedia({ colorScheme: "dark" });
  seen.dark = await back();
  await page.screenshot({ path: `${folder}/dark.png`, fullPage: true });
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  seen.printed = await back();
  seen.nav_is_printed = await page.locator("nav").isVisible();
  await page.emulateMedia({ media: null });
  seen.pdf_bytes = (await page.pdf({ path: `${folder}/report.pdf` })).length;
} finally {
  await browser.close();
}
console.log(JSON.stringify(seen));
