"use strict";
// Figures as people read them, and elements as the page needs them.

const UNKNOWN = "–";
const NUMBER = "number", NAME = "name"; // classes of columns

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

function digits(value) {
  const size = Math.abs(value);
  return size >= 100 || size === 0 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function withPrefix(value, unit, prefixes) {
  let which = 0;
  while (Math.abs(value) >= 999.5 && which + 1 < prefixes.length) {
    value /= 1000;
    ++which;
  }
  return `${which === 0 ? value.toFixed(0) : digits(value)} ${prefixes[which]}${unit}`;
}

/** Bytes per second, as bits: "12.4 Mbit/s". */
function rateText(bytes) {
  return isNumber(bytes) ? withPrefix(bytes * 8, "bit/s", ["", "k", "M", "G", "T"]) : UNKNOWN;
}

function bytesText(bytes) {
  return isNumber(bytes) ? withPrefix(bytes, "B", ["", "k", "M", "G", "T"]) : UNKNOWN;
}

function countText(count) {
  return isNumber(count) ? Math.round(count).toLocaleString("en") : UNKNOWN;
}

function millisecondsText(ms) {
  if (!isNumber(ms)) return UNKNOWN;
  return ms >= 1000 ? `${digits(ms / 1000)} s` : `${ms >= 10 || ms === 0 ? ms.toFixed(0) : ms.toFixed(1)} ms`;
}

function shareText(share) {
  if (!isNumber(share)) return UNKNOWN;
  const percent = share * 100;
  if (percent === 0 || percent >= 99.95) return `${percent.toFixed(0)} %`;
  return percent < 0.01 ? "< 0.01 %" : `${percent < 1 ? percent.toFixed(2) : percent.toFixed(1)} %`;
}

/** Rounded down: only what was always there has "100 %". */
function availabilityText(share) {
  return share >= 0.99 && share < 1 ? `${(Math.floor(share * 10000) / 100).toFixed(2)} %` : shareText(share);
}

function spanText(seconds) {
  if (!isNumber(seconds)) return UNKNOWN;
  const s = Math.floor(seconds);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

function clockText(unix, withSeconds) {
  const at = new Date(unix * 1000);
  const two = (n) => String(n).padStart(2, "0");
  return `${two(at.getHours())}:${two(at.getMinutes())}${withSeconds ? ":" + two(at.getSeconds()) : ""}`;
}

/** "2026-07-01", with the time of day unless it is midnight. */
function dateText(unix) {
  const at = new Date(unix * 1000), two = (n) => String(n).padStart(2, "0"), clock = clockText(unix);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}${clock === "00:00" ? "" : ` ${clock}`}`;
}

/** An address without its port. */
function hostOf(endpoint) {
  return endpoint.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
}

function plural(n, what) {
  return `${countText(n)} ${what}${n === 1 ? "" : "s"}`;
}

/** An element with properties, and texts or elements in it. What comes from outside is text only. */
function element(tag, properties = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") made.className = value;
    else if (name === "onclick") made.addEventListener("click", value);
    else made.setAttribute(name, value);
  }
  made.append(...inside);
  return made;
}

function put(id, text) {
  const at = document.getElementById(id);
  if (at.textContent !== text) at.textContent = text;
}

/** Shows [name, value, note, key] as tiles. */
function putTiles(id, tiles) {
  const list = document.getElementById(id);
  list.replaceChildren(...tiles.map(([name, value, note, key]) => {
    const figure = element("dd", { "data-figure": key }, value);
    if (note) figure.append(" ", element("small", {}, note));
    return element("div", {}, element("dt", {}, name), figure);
  }));
}

/** Shows a table. Columns: [title, class: NUMBER or NAME]; cells are texts or elements. Narrow windows show cards. */
function putTable(id, columns, rows, ifEmpty) {
  const table = document.getElementById(id);
  if (rows.length === 0) {
    table.replaceChildren(element("caption", { class: "empty" }, ifEmpty));
    return;
  }
  const kind = (which) => (columns[which][1] ? { class: columns[which][1] } : {});
  const head = element("tr", {}, ...columns.map(([title], i) => element("th", { scope: "col", ...kind(i) }, title)));
  const body = rows.map((cells) => element("tr", {}, ...cells.map((cell, i) =>
    element("td", { ...kind(i), "data-title": columns[i][0] }, cell))));
  table.replaceChildren(element("thead", {}, head), element("tbody", {}, ...body));
}
