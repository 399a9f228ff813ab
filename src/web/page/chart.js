"use strict";
// The picture of a path: rates, RTT, losses and state above one time axis.

const SVG = "http://www.w3.org/2000/svg";
const GUTTER = 66, RIGHT = 6; // pixels for the labels of the axes
const BANDS = { rate: [16, 88], rtt: [112, 160], loss: [184, 216], state: [227, 234] };
const AXIS = 249, HEIGHT = 253;

function shape(tag, properties, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(properties)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/** The next number above that is easy to read: 1, 2 or 5 of a power of ten. */
function niceAbove(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  for (const step of [1, 2, 5, 10]) if (value <= step * power * 1.0001) return step * power;
  return 10 * power;
}

const TICKS = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 14400, 21600, 43200];

/** Moments of the time axis, at most so many, at full minutes or hours of the clock here. */
function ticksOf(from, until, most) {
  const step = TICKS.find((s) => (until - from) / s <= most) || 86400;
  const shift = new Date(until * 1000).getTimezoneOffset() * 60;
  const ticks = [];
  for (let t = Math.ceil((from - shift) / step) * step + shift; t <= until; t += step) ticks.push(t);
  return ticks;
}

class PathChart {
  /** A point: {from, until, down, up (bytes/s), rtt, queue (ms), lost, left (shares), state}; null: unknown. */
  constructor(onPoint) {
    this.svg = shape("svg", { class: "chart", height: HEIGHT, role: "img" });
    this.onPoint = onPoint;
    this.points = [];
    this.svg.addEventListener("pointermove", (event) => this.readAt(event.offsetX));
    this.svg.addEventListener("pointerdown", (event) => this.readAt(event.offsetX));
    this.svg.addEventListener("pointerleave", () => this.readAt(null));
  }

  draw(points, from, until, label) {
    this.points = points;
    this.from = from;
    this.until = until;
    this.width = Math.max(220, this.svg.clientWidth || 460);
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    this.svg.setAttribute("aria-label", label);
    const parts = [];
    const ticks = ticksOf(from, until, this.width < 420 ? 4 : 7), withSeconds = ticks[1] - ticks[0] < 60;
    for (const t of ticks) {
      const x = this.x(t);
      parts.push(shape("line", { class: "grid", x1: x, x2: x, y1: BANDS.rate[0], y2: BANDS.state[1] + 3 }));
      if (x > GUTTER + 12 && x < this.width - (withSeconds ? 24 : 14))
        parts.push(shape("text", { x, y: AXIS, "text-anchor": "middle" }, clockText(t, withSeconds)));
    }
    const top = (...keys) => Math.max(0, ...points.flatMap((p) => keys.map((key) => p[key] || 0)));
    const rate = niceAbove(Math.max(top("down", "up") * 8, 1000)) / 8;
    const rtt = niceAbove(Math.max(top("rtt"), 1));
    const loss = niceAbove(Math.max(top("lost") * 100, 1)) / 100;
    parts.push(...this.band("rate", "Rate", rateText(rate).replace(/\.0+ /, " ")),
               ...this.band("rtt", "RTT", millisecondsText(rtt).replace(".0 ", " ")),
               ...this.band("loss", "Loss", shareText(loss).replace(".0 ", " ")));
    parts.push(shape("text", { x: GUTTER - 6, y: BANDS.state[1], "text-anchor": "end" }, "State"));
    parts.push(...this.areas("rate", "down", rate), ...this.lines("rate", "down", rate), ...this.lines("rate", "up", rate));
    parts.push(...this.areas("rtt", "queue", rtt), ...this.lines("rtt", "rtt", rtt));
    parts.push(...this.bars("lost", loss), ...this.bars("left", loss), ...this.ribbon());
    this.cursor = shape("line", { class: "cursor", y1: BANDS.rate[0], y2: BANDS.state[1], visibility: "hidden" });
    this.svg.replaceChildren(...parts, this.cursor);
    if (this.cursorX) this.readAt(this.cursorX);
  }

  x(t) {
    return GUTTER + Math.max(0, (t - this.from) / (this.until - this.from)) * (this.width - GUTTER - RIGHT);
  }

  y(band, share) {
    const [high, low] = BANDS[band];
    return low - Math.min(1, Math.max(0, share)) * (low - high);
  }

  band(name, title, most) {
    const [high, low] = BANDS[name];
    const at = { x: GUTTER - 6, "text-anchor": "end" };
    return [
      shape("line", { class: "grid", x1: GUTTER, x2: this.width - RIGHT, y1: high, y2: high }),
      shape("line", { class: "base", x1: GUTTER, x2: this.width - RIGHT, y1: low, y2: low }),
      shape("text", { ...at, y: high + 4 }, most), shape("text", { ...at, y: low + 3 }, "0"),
      shape("text", { class: "title", x: GUTTER + 3, y: high - 4 }, title),
    ];
  }

  /** Rows of points that follow each other and are known. */
  runs(key) {
    const runs = [];
    let run = [], last = null;
    for (const point of this.points) {
      const gap = last && point.from - last.until > Math.max(3, (last.until - last.from) * 1.6);
      if (gap || !isNumber(point[key])) {
        if (run.length) runs.push(run);
        run = [];
      }
      if (isNumber(point[key])) run.push(point);
      last = point;
    }
    if (run.length) runs.push(run);
    return runs;
  }

  /** From the begin of the first point to the end of the last one, so that a curve reaches now. */
  corners(run, band, key, most) {
    const corner = (t, p) => `${this.x(t).toFixed(1)},${this.y(band, p[key] / most).toFixed(1)}`;
    const last = run[run.length - 1];
    return [corner(run[0].from, run[0]), ...run.map((p) => corner((p.from + p.until) / 2, p)), corner(last.until, last)];
  }

  lines(band, key, most) {
    return this.runs(key).map((run) => shape("polyline",
      { class: `line ${key}`, points: this.corners(run, band, key, most).join(" ") }));
  }

  areas(band, key, most) {
    const low = BANDS[band][1];
    return this.runs(key).map((run) => {
      const first = this.x(run[0].from), last = this.x(run[run.length - 1].until);
      return shape("polygon", { class: `area ${key}`, points:
        `${first.toFixed(1)},${low} ${this.corners(run, band, key, most).join(" ")} ${last.toFixed(1)},${low}` });
    });
  }

  bars(key, most) {
    return this.points.filter((p) => p[key] > 0).map((p) => {
      const x = this.x(p.from), y = Math.min(this.y("loss", p[key] / most), BANDS.loss[1] - 1.5);
      return shape("rect", { class: key, x: x.toFixed(1), y: y.toFixed(1),
                             width: Math.max(1.2, this.x(p.until) - x - 0.4).toFixed(1), height: (BANDS.loss[1] - y).toFixed(1) });
    });
  }

  /** The state as a ribbon; a worse state is also thicker, for eyes that do not tell the colours apart. */
  ribbon() {
    const parts = [];
    let open = null;
    const close = () => {
      if (!open) return;
      const [high, low] = BANDS.state, isGood = open.state === "active" || open.state === "resting";
      const x = this.x(open.from), width = Math.max(1.5, this.x(open.until) - x);
      parts.push(shape("rect", { class: `state ${open.state}`, x: x.toFixed(1), y: isGood ? high + 2 : high - 2,
                                 width: width.toFixed(1), height: isGood ? low - high - 3 : low - high + 3 }));
      open = null;
    };
    for (const point of this.points) {
      if (open && (open.state !== point.state || point.from - open.until > 15)) close();
      if (!point.state) continue;
      if (open) open.until = point.until;
      else open = { state: point.state, from: point.from, until: point.until };
    }
    close();
    return parts;
  }

  readAt(x) {
    this.cursorX = x;
    const t = x === null ? null : this.from + ((x - GUTTER) / (this.width - GUTTER - RIGHT)) * (this.until - this.from);
    let best = null;
    if (t !== null) {
      for (const p of this.points) {
        const away = Math.abs((p.from + p.until) / 2 - t);
        if (!best || away < best.away) best = { away, p };
      }
    }
    if (!best || best.away > (this.until - this.from) / 20) {
      if (this.cursor) this.cursor.setAttribute("visibility", "hidden");
      this.onPoint(null);
      return;
    }
    const at = this.x((best.p.from + best.p.until) / 2);
    for (const side of ["x1", "x2"]) this.cursor.setAttribute(side, at);
    this.cursor.setAttribute("visibility", "visible");
    this.onPoint(best.p);
  }
}
