// Draws the charts of a report in place of its plain ones. Built by npm and esbuild (bundle.cmake).

import * as echarts from "echarts/core";
import { CustomChart, LineChart, ScatterChart } from "echarts/charts";
import { AriaComponent, DataZoomComponent, GridComponent, LegendComponent, TooltipComponent } from "echarts/components";
import { SVGRenderer } from "echarts/renderers";

echarts.use([CustomChart, LineChart, ScatterChart, AriaComponent, DataZoomComponent, GridComponent, LegendComponent,
  TooltipComponent, SVGRenderer]);

const LIGHT = { text: "#222", line: "#777", grid: "#ddd", back: "#fff",
  colors: ["#0072b2", "#d55e00", "#00805f", "#b04a86", "#8a6d00", "#2a7fb8", "#555", "#7a3cc2"] };
const DARK = { text: "#ddd", line: "#999", grid: "#444", back: "#16181b",
  colors: ["#56b4e9", "#ff9a4d", "#3fd0a5", "#e59ac8", "#f0e442", "#9fd0f0", "#bbb", "#c9a2ff"] };
const SYMBOLS = ["circle", "rect", "triangle", "diamond"];
const DASHES = ["solid", "dashed", "dotted"];

// The band of a line: one polygon, from the upper bounds to the right and along the lower bounds back.
function band(curve, color) {
  return {
    type: "custom", name: curve.name, silent: true, z: 1, data: [curve.marks.length], clip: true,
    encode: { x: [], y: [] },
    renderItem: (_, api) => {
      const upper = curve.marks.map(([x, , , high]) => api.coord([x, high]));
      const lower = curve.marks.map(([x, , low]) => api.coord([x, low])).reverse();
      return { type: "polygon", shape: { points: upper.concat(lower) }, style: { fill: color, opacity: 0.15 } };
    },
  };
}

// The bands of single points: a bar from the lower to the upper bound.
function bars(curve, color, shift) {
  return {
    type: "custom", name: curve.name, silent: true, data: curve.marks, encode: { x: 0, y: [2, 3] },
    renderItem: (_, api) => {
      const [x, low] = api.coord([api.value(0), api.value(2)]);
      const high = api.coord([api.value(0), api.value(3)])[1];
      return { type: "line", shape: { x1: x + shift, x2: x + shift, y1: low, y2: high }, style: { stroke: color } };
    },
  };
}

function seriesOf(chart, theme) {
  const series = [];
  chart.curves.forEach((curve, index) => {
    const color = theme.colors[index % theme.colors.length];
    const shift = (index - (chart.curves.length - 1) / 2) * 6;
    const isLine = !chart.samples && chart.categories.length === 0;
    series.push({
      type: isLine ? "line" : "scatter", name: curve.name, data: curve.marks, encode: { x: 0, y: 1 }, itemStyle: { color },
      symbol: SYMBOLS[index % SYMBOLS.length], symbolSize: chart.samples ? 4 : 9,
      symbolOffset: chart.categories.length > 0 ? [shift, 0] : [0, 0],
      lineStyle: { color, type: DASHES[Math.floor(index / SYMBOLS.length) % DASHES.length] },
    });
    // After the marks: the legend shows the first series of a name.
    if (isLine) series.push(band(curve, color));
    if (chart.categories.length > 0) series.push(bars(curve, color, shift));
  });
  return series;
}

function axis(name, isLog, theme, more) {
  return {
    type: isLog ? "log" : "value", name, nameLocation: "middle", nameTextStyle: { color: theme.text },
    axisLabel: { color: theme.text }, axisLine: { lineStyle: { color: theme.line } },
    splitLine: { lineStyle: { color: theme.grid } }, ...more,
  };
}

function optionOf(chart, theme) {
  const isCategory = chart.categories.length > 0;
  const number = (value) => Number(value.toPrecision(4)).toString();
  const escape = echarts.format.encodeHTML;
  return {
    animation: false,
    backgroundColor: "transparent",
    aria: { enabled: true, label: { description: `${chart.title}. ${chart.yName} by ${chart.xName}, for ` +
      `${chart.curves.map((curve) => curve.name).join(", ")}. The table below has the values.` } },
    grid: { left: 80, right: 24, top: 48, bottom: 92 },
    legend: { type: "scroll", top: 8, textStyle: { color: theme.text }, data: chart.curves.map((curve) => curve.name) },
    tooltip: { formatter: ({ seriesName, value }) =>
      `${escape(seriesName)}<br>${escape(isCategory ? chart.categories[value[0]] : `${chart.xName} ${value[0]}`)}: ` +
      `${number(value[1])}${chart.samples ? "" : ` (${number(value[2])} to ${number(value[3])})`}` },
    xAxis: axis(chart.xName, chart.xLog, theme, isCategory ? { type: "category", data: chart.categories, nameGap: 28 }
      : { nameGap: 28, min: "dataMin", max: "dataMax" }),
    yAxis: axis(chart.yName, chart.yLog, theme, { nameGap: 56 }),
    dataZoom: [{ type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, filterMode: "none" },
      { type: "slider", height: 20, bottom: 8, filterMode: "none", showDetail: false }],
    series: seriesOf(chart, theme),
  };
}

// Returns the part of the axis, in per cent, that a key selects, or null for other keys.
function zoomed(key, { start, end }) {
  const width = end - start;
  const move = { ArrowLeft: -width / 4, ArrowRight: width / 4 }[key];
  if (move !== undefined) {
    const by = Math.max(-start, Math.min(100 - end, move));
    return { start: start + by, end: end + by };
  }
  if (key === "+" || key === "=") return { start: start + width / 8, end: end - width / 8 };
  if (key === "-") return { start: Math.max(0, start - width / 6), end: Math.min(100, end + width / 6) };
  return key === "0" ? { start: 0, end: 100 } : null;
}

function zoomByKeys(element, drawn) {
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const range = zoomed(event.key, drawn().getOption().dataZoom[0]);
    if (!range) return;
    event.preventDefault();
    drawn().dispatchAction({ type: "dataZoom", ...range });
  });
}

function draw(chart) {
  const element = document.querySelector(`[data-chart="${CSS.escape(chart.id)}"]`);
  let drawn = null;
  element.replaceChildren();
  element.classList.add("drawn");
  element.tabIndex = 0;
  const hint = element.parentElement.querySelector(".hint");
  hint.hidden = false;
  hint.id = `${chart.id}-hint`;
  const redraw = (theme) => {
    if (!drawn) drawn = echarts.init(element, null, { renderer: "svg" });
    drawn.setOption(optionOf(chart, theme), true);
    drawn.resize();
    element.setAttribute("role", "img");
    element.setAttribute("aria-describedby", hint.id);
  };
  zoomByKeys(element, () => drawn);
  return redraw;
}

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const redraws = JSON.parse(document.getElementById("charts").textContent).map(draw);
const drawAll = (theme) => redraws.forEach((redraw) => redraw(theme));
const drawForScreen = () => drawAll(dark.matches ? DARK : LIGHT);
drawForScreen();
dark.addEventListener("change", drawForScreen);
window.addEventListener("resize", drawForScreen);
window.addEventListener("beforeprint", () => drawAll(LIGHT));
window.addEventListener("afterprint", drawForScreen);
