"use strict";
// The page: asks its own server every second for what is now, now and then for what was, and shows both.

const LIVE_MS = 1000, PAST_MS = 15000, DAY_MS = 60000, TIMEOUT_MS = 15000;
const MANY_CARDS = 8; // further ones are folded away, and pictures drawn every few seconds only
const JOINED_S = 30; // longest time between a step of the history and the page's first look
const LEAST_SPAN = 15; // seconds of the time axis, which otherwise begins where the data begins
const STATES = { active: "active", resting: "rests", suspect: "down", validating: "being tried", failed: "down",
                 closed: "down", suppressed: "held back" };
const WORSE = { path_silent: "warn", path_gone: "bad", peer_down: "bad", handshake_failed: "warn", cap_reached: "warn",
                forged_ack: "bad", path_up: "good", peer_up: "good" };

const view = { span: 600, peer: "", live: null, past: null, day: null, drawn: 0 };
const cards = new Map(); // by peer and path: {root, chart, recent points, ...}

async function ask(path) {
  const query = view.peer ? `?peer=${encodeURIComponent(view.peer)}` : "";
  const answer = await fetch(path + query, { signal: AbortSignal.timeout(TIMEOUT_MS), cache: "no-store" });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

// ---- paths

function keyOf(peer, path) {
  return `${peer}\n${path}`;
}

/** Subflows of one path together: IPv4 and IPv6 of an uplink, or several to one peer. */
function groupPaths(rows) {
  const groups = new Map();
  for (const row of rows) {
    const key = keyOf(row.peer, row.path);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(row);
  }
  return groups;
}

function sumOf(rows, name) {
  const known = rows.map((row) => row[name]).filter(isNumber);
  return known.length ? known.reduce((a, b) => a + b, 0) : null;
}

function stateOf(row) {
  if (row.state === "active" && row.resting) return "resting";
  return row.state;
}

const ORDER = ["active", "resting", "validating", "suspect", "failed", "closed"];

/** "active", or of a path that does not work "down for 15 s". */
function stateText(row) {
  const state = stateOf(row), word = STATES[state] || state;
  return row.down_s >= 1 ? `down for ${spanText(row.down_s)}` : row.down_s > 0 ? "down" : word;
}

function bestOf(rows) {
  return rows.reduce((a, b) => (ORDER.indexOf(stateOf(b)) < ORDER.indexOf(stateOf(a)) ? b : a));
}

const FIGURES = [
  ["down", "Down", "down_bytes_per_s", rateText], ["up", "Up", "up_bytes_per_s", rateText],
  ["rtt", "RTT", "srtt_ms", millisecondsText], ["queue", "of it queue", "queue_delay_ms", millisecondsText],
  ["lost", "Lost, 1 min", "lost_share", shareText], ["left", "of it repaired", "recovered_share", shareText],
];

function makeCard(key) {
  const card = { recent: [], figures: {} };
  card.by = element("span", { class: "by" });
  card.chip = element("span", { class: "chip" });
  card.about = element("span", { class: "quiet" });
  card.carried = element("p", { class: "quiet carried" });
  card.readout = element("p", { class: "readout" });
  card.chart = new PathChart((point) => { card.readout.textContent = point ? pointText(point) : card.note; });
  const figures = FIGURES.map(([kind, title, name]) => {
    const figure = element("dd", { "data-figure": name });
    card.figures[name] = figure;
    return element("div", { class: kind }, element("dt", {}, title), figure);
  });
  card.root = element("article", { class: "path" }, element("h3", {}, card.by, card.chip, card.about),
                      element("dl", { class: "figures" }, ...figures), card.chart.svg, card.readout, card.carried);
  card.root.dataset.path = key.replace("\n", "/");
  cards.set(key, card);
  return card;
}

function pointText(p) {
  return [`${clockText(p.until, true)}`, `down ${rateText(p.down)}`, `up ${rateText(p.up)}`, `RTT ${millisecondsText(p.rtt)}`,
          `queue ${millisecondsText(p.queue)}`,
          isNumber(p.lost) ? `lost ${shareText(p.lost)}, not repaired in time ${shareText(p.left)}` : "", STATES[p.state] || p.state || ""]
    .filter(Boolean).join(" · ");
}

/** How much of the day the path's uplink worked, and what it carried beside its cap. */
function carriedParts(name) {
  const uplink = (view.live.gateway.uplinks || []).find((each) => each.name === name) || {};
  const { availability, carried, metered } = uplink, out = [];
  if (isNumber(availability)) out.push(`available ${availabilityText(availability)}`);
  if (carried) out.push(`today ${bytesText(carried.today_bytes)}`, `this month ${bytesText(carried.month_bytes)}`);
  if (metered) {
    out.push(`${shareText(metered.used_bytes / metered.cap_bytes)} of ${bytesText(metered.cap_bytes)} until ` +
             `${dateText(metered.until_unix_s)}${metered.closed ? ", cap reached" : ""}`);
  }
  return out;
}

function fillCard(card, rows, at) {
  const best = bestOf(rows), state = stateOf(best), several = new Set(view.live.paths.map((row) => row.peer)).size > 1;
  card.by.textContent = several ? `${best.peer}: ${best.path}` : best.path;
  card.chip.textContent = stateText(best);
  card.chip.className = `chip ${state}`;
  card.root.classList.toggle("is-down", best.state !== "active");
  card.about.textContent = [best.use && best.use !== "normal" ? best.use : "", best.path !== best.remote ? `to ${best.remote}` : "",
                            best.public_address ? `seen as ${hostOf(best.public_address)}` : "",
                            rows.length > 1 ? `${rows.length} subflows` : ""].filter(Boolean).join(", ");
  for (const [, , name, text] of FIGURES) {
    let value = best[name];
    if (name.endsWith("bytes_per_s")) value = sumOf(rows, name);
    card.figures[name].textContent = text(value);
    card.figures[name].dataset.value = value;
  }
  card.carried.replaceChildren(...carriedParts(best.uplink).map((part) => element("span", {}, part)));
  card.note = `received ${bytesText(sumOf(rows, "received_bytes"))}, sent ${bytesText(sumOf(rows, "sent_bytes"))}, ` +
              `packets of up to ${countText(best.mtu_bytes)}\u00a0B`;
  for (const name of ["sent_bytes", "received_bytes", "sent_packets", "mtu_bytes"])
    card.root.dataset[name.replace(/_(.)/g, (_, c) => c.toUpperCase())] = name === "mtu_bytes" ? best[name] : sumOf(rows, name);
  const last = card.recent.at(-1);
  if (!last || at > last.until) {
    card.recent.push({ from: last && at - last.until < 5 ? last.until : at - LIVE_MS / 1000, until: at, state,
                       down: sumOf(rows, "down_bytes_per_s"), up: sumOf(rows, "up_bytes_per_s"),
                       rtt: state === "active" || state === "resting" ? best.srtt_ms : null, queue: best.queue_delay_ms });
    while (card.recent.length > 900) card.recent.shift();
  }
}

/** Steps of the daemon's last hour, or of the day, as points. */
function pointsOf(told, stepSeconds) {
  const points = [];
  if (!told) return points;
  const at = Object.fromEntries(told.columns.map((name, i) => [name, i]));
  const get = (row, name) => (name in at ? row[at[name]] : null);
  for (const row of told.steps) {
    const seconds = get(row, "seconds") || stepSeconds, until = get(row, "until_unix_s");
    const sent = get(row, "sent_packets"), spurious = get(row, "spurious_losses") || 0;
    const lost = Math.max(0, get(row, "lost_packets") - spurious);
    const left = Math.max(0, lost - get(row, "recovered_packets"));
    const isThere = get(row, "state") === "active";
    points.push({ from: until - seconds, until, state: get(row, "state"), down: get(row, "received_bytes") / seconds,
                  up: get(row, "sent_bytes") / seconds, rtt: isThere ? get(row, "srtt_ms") : null,
                  queue: isThere ? get(row, "queue_delay_ms") : null, lost: sent > 0 ? lost / sent : 0, left: sent > 0 ? left / sent : 0 });
  }
  return points;
}

function within(list, peer, path) {
  return (list || []).find((each) => each.peer === peer && each.path === path);
}

function drawCard(card, key, until) {
  const [peer, path] = key.split("\n");
  const hour = pointsOf(within(view.past && view.past.steps, peer, path), view.past && view.past.step_s);
  let points = hour;
  if (view.span > 3600 && view.day) {
    const told = within(view.day.paths, peer, path);
    const day = pointsOf(told && { columns: view.day.columns, steps: told.steps }, view.day.step_s);
    const first = hour.length ? hour[0].from : Infinity;
    points = day.filter((p) => p.until <= first + 1).concat(hour);
  }
  const known = points.length ? points.at(-1).until : 0;
  const recent = card.recent.filter((p) => p.until > known + 0.5);
  // The first seconds of the page join the last step, which may have ended some seconds before.
  if (recent.length && known && recent[0].from - known < JOINED_S) recent[0] = { ...recent[0], from: known };
  points = points.concat(recent).filter((p) => p.until > until - view.span);
  const from = Math.max(until - view.span, Math.min(points.length ? points[0].from : until, until - LEAST_SPAN));
  card.chart.draw(points, from, until, `${path}: rates, RTT, losses and state, from ${clockText(from)} to ${clockText(until)}`);
  if (!card.chart.cursorX) card.readout.textContent = card.note;
}

function putCards(id, keys) {
  const list = document.getElementById(id), wanted = keys.map((key) => cards.get(key).root);
  if (wanted.length !== list.children.length || wanted.some((root, i) => list.children[i] !== root)) list.replaceChildren(...wanted);
}

function showPaths(mayDraw) {
  const live = view.live, groups = groupPaths(live.paths), more = document.getElementById("more");
  for (const key of cards.keys()) if (!groups.has(key)) cards.delete(key);
  for (const [key, rows] of groups) fillCard(cards.get(key) || makeCard(key), rows, live.at_unix_s);
  const isDown = (key) => bestOf(groups.get(key)).state !== "active";
  const keys = downFirst([...groups.keys()], isDown);
  const first = keys.slice(0, MANY_CARDS), rest = keys.slice(MANY_CARDS);
  putCards("paths", first);
  putCards("more-paths", rest);
  more.hidden = rest.length === 0;
  put("more-note", `${plural(rest.length, "more path")}`);
  document.getElementById("no-paths").hidden = keys.length > 0;
  put("paths-note", someOf(live.paths.length, live.totals.paths) + (live.paths.length < live.totals.paths && live.peer_count > 1 && !view.peer ?
    "; choose a peer to see its own" : ""));
  if (!mayDraw && rest.length && Date.now() - view.drawn < 5000) return;
  view.drawn = Date.now();
  for (const key of more.open ? keys : first) drawCard(cards.get(key), key, live.at_unix_s);
}

/** Of many, those that are down first. */
function downFirst(list, isDown) {
  return list.length > MANY_CARDS ? list.filter(isDown).concat(list.filter((each) => !isDown(each))) : list;
}

function someOf(shown, all) {
  return shown < all ? `${countText(shown)} of ${countText(all)}: what is down, and the busiest` : "";
}

// ---- the rest

function showHead() {
  const { gateway, totals, paths } = view.live;
  put("device", gateway.device || "");
  put("about", `braidd ${gateway.version}, up ${spanText(gateway.uptime_s)}`);
  document.title = `Braid ${gateway.device || ""}`;
  const away = paths.filter((row) => row.state !== "active"), words = [`${countText(totals.peers_up)} of ${plural(totals.peers, "peer")} up`,
    `${countText(totals.active_paths)} of ${plural(totals.paths, "path")} active`];
  if (away.length) words.push(away.slice(0, 3).map((row) => `${row.path} ${stateText(row)}`).join(", "));
  const health = document.getElementById("health");
  put("health", words.join(" · "));
  const isBad = totals.peers > 0 && totals.peers_up === 0;
  health.className = `health ${isBad ? "bad" : totals.peers_up < totals.peers || away.length ? "warn" : "good"}`;
}

function showTotals() {
  const { totals, paths } = view.live;
  const rtts = paths.filter((row) => row.state === "active").map((row) => row.srtt_ms).filter((ms) => ms > 0);
  putTiles("totals", [
    ["Down, all paths together", rateText(totals.down_bytes_per_s), "", "down_bytes_per_s"],
    ["Up", rateText(totals.up_bytes_per_s), "", "up_bytes_per_s"],
    ["RTT of the best path", rtts.length ? millisecondsText(Math.min(...rtts)) : UNKNOWN, "", "best_rtt"],
    ["Lost on the paths, last minute", shareText(totals.lost_share), "", "lost_share"],
    ["Repaired before the sender knew", countText(totals.minute_recovered_packets),
     totals.minute_lost_packets > 0 ? `of ${countText(totals.minute_lost_packets)}` : "", "recovered"],
    ["Sent again", countText(totals.minute_retransmitted), laterText(totals), "retransmitted"],
    ["Never delivered", countText(totals.minute_undelivered), "", "undelivered"],
    ["Flows and streams", countText(totals.flows), `+ ${countText(totals.streams)}`, "flows"],
  ]);
}

function laterText(sums) {
  return isNumber(sums.retransmit_delay_ms) ? `${millisecondsText(sums.retransmit_delay_ms)} later` : "";
}

function showPeers() {
  const { peers, peer_count } = view.live, select = document.getElementById("peer");
  put("peers-note", someOf(peers.length, peer_count));
  document.getElementById("peer-choice").hidden = peer_count < 2 && !view.peer;
  const names = peers.map((row) => row.name);
  if (view.peer && !names.includes(view.peer)) names.unshift(view.peer);
  const known = [...select.options].slice(1).map((option) => option.value);
  if (known.join("\n") !== names.join("\n") && document.activeElement !== select) {
    select.replaceChildren(element("option", { value: "" }, "all"), ...names.map((name) => element("option", { value: name }, name)));
    select.value = view.peer;
  }
  putTable("peers", [["Peer", NAME], ["State"], ["Down", NUMBER], ["Up", NUMBER], ["Paths", NUMBER], ["Flows", NUMBER], ["Held", NUMBER],
                    ["Age", NUMBER]],
    downFirst(peers, (row) => !row.up).map((row) => [
      element("button", { type: "button", onclick: () => choose(row.name) }, row.name),
      row.up ? (row.group && !row.in_use ? "up, stands by" : "up") : "down",
      rateText(row.down_bytes_per_s), rateText(row.up_bytes_per_s), `${row.active_paths} of ${row.paths}`,
      countText(row.flow_count + row.stream_count), countText(row.held_packets), row.up ? spanText(row.age_s) : UNKNOWN,
    ]), "No peer is configured.");
}

function rateCell(row, most) {
  const rate = (row.up_bytes_per_s || 0) + (row.down_bytes_per_s || 0);
  const bar = element("span", { class: "bar" });
  bar.style.width = `${most > 0 ? Math.round((rate / most) * 60) : 0}px`;
  return element("span", {}, bar, isNumber(row.up_bytes_per_s) ? rateText(rate) : UNKNOWN);
}

const FLOW_COLUMNS = [["Rate", NUMBER], ["Flow", NAME], ["Peer"], ["Delivery"], ["Sent", NUMBER], ["Received", NUMBER],
                      ["Waiting", NUMBER], ["Dropped", NUMBER], ["First byte", NUMBER]];

function flowCells(row, most) {
  return [rateCell(row, most), element("span", row.shown === row.name ? {} : { title: row.name }, row.shown), row.peer, row.delivery,
          bytesText(row.sent_bytes), bytesText(row.received_bytes), bytesText(row.queued_bytes), countText(row.drops),
          row.first_byte_s > 0 ? millisecondsText(row.first_byte_s * 1000) : UNKNOWN];
}

function showFlows() {
  const { flows, idle_flows, totals } = view.live, all = totals.flows + totals.streams - totals.idle;
  const most = Math.max(0, ...flows.map((row) => (row.up_bytes_per_s || 0) + (row.down_bytes_per_s || 0)));
  put("flows-note", flows.length < all ? `${flows.length} of ${countText(all)}: the busiest` : "");
  putTable("flows", FLOW_COLUMNS, flows.map((row) => flowCells(row, most)), "Nothing is carried now.");
  const idle = document.getElementById("idle");
  idle.hidden = totals.idle === 0;
  put("idle-note", `${countText(totals.idle)} idle`);
  if (idle.open) putTable("idle-flows", FLOW_COLUMNS, idle_flows.map((row) => flowCells(row, 0)), "");
}

function showDone() {
  const { sums, from_unix_s, until_unix_s } = view.past;
  const seconds = until_unix_s - from_unix_s;
  put("done-note", seconds > 3500 && seconds < 3700 ? "in the last hour" : `in the last ${spanText(seconds)}`);
  putTiles("done", [
    ["lost on the paths", countText(sums.lost_packets), sums.sent_packets ? shareText(sums.lost_packets / sums.sent_packets) : "",
     "lost_packets"],
    ["repaired before the sender knew", countText(sums.recovered_packets), "", "recovered_packets"],
    ["sent again", countText(sums.retransmitted_packets), laterText(sums), "retransmitted_packets"],
    ["never delivered", countText(sums.undelivered_packets), "", "undelivered_packets"],
    ["of what came in, given back by coding", countText(sums.decoded_packets), "", "decoded_packets"],
    ["times a path was taken out", countText(sums.paths_taken_out),
     [sums.paths_taken_out ? `${countText(sums.paths_came_back)} back` : "", sums.blips ? plural(sums.blips, "blip") : ""]
       .filter(Boolean).join(", "), "paths_taken_out"],
    ["stalls avoided: packets went by other paths", countText(sums.stalls_avoided), "", "stalls_avoided"],
  ]);
}

function troubleEvents() {
  const out = [];
  for (const path of view.past.paths) {
    for (const t of path.troubles) {
      const lasted = t.to_unix_s - t.from_unix_s;
      const to = t.to_unix_s ? ` for ${lasted < 10 ? millisecondsText(lasted * 1000) : spanText(lasted)}` : "";
      if (t.kind === "loss") {
        out.push({ at: t.from_unix_s, kind: "warn", text: `${path.path}: lost ${shareText(t.lost / t.packets)} of its packets${to}; ` +
          `${countText(t.recovered)} of ${countText(t.lost)} repaired before the sender knew` });
      } else if (t.kind === "queue") {
        out.push({ at: t.from_unix_s, kind: "warn", text: `${path.path}: packets waited up to ${millisecondsText(t.most_queue_ms)}${to}` });
      } else if (!t.to_unix_s) {
        out.push({ at: t.from_unix_s, kind: "warn", text: `${path.path}: down since ${clockText(t.from_unix_s, true)}` +
          `${t.went_elsewhere ? ", its packets go by other paths" : ""}` });
      } else {
        out.push({ at: t.from_unix_s, kind: t.stall_avoided ? "good" : "warn", text: `${path.path}: down${to}` +
          `${t.stall_avoided ? ", its packets went by other paths: a stall avoided" : ""}` });
      }
    }
  }
  return out;
}

/** Whether a trouble tells of this event: an outage is one line. */
function isTold(event) {
  return ["path_silent", "path_gone", "path_up"].includes(event.kind) && view.past.paths.some((path) =>
    path.peer === event.peer && path.path === event.path && path.troubles.some((t) =>
      (t.kind === "silent" || t.kind === "gone") && (t.from_unix_s === event.at_unix_s || t.to_unix_s === event.at_unix_s)));
}

function showEvents() {
  const told = view.past.all_events.filter((event) => !isTold(event)).map((event) => ({ at: event.at_unix_s, kind: WORSE[event.kind] || "",
    text: `${event.peer ? `${event.peer}: ` : ""}${event.text}${event.count > 1 ? ` (${countText(event.count)} times, last at ${clockText(event.last_unix_s, true)})` : ""}` }));
  const all = told.concat(troubleEvents()).sort((a, b) => b.at - a.at).slice(0, 80);
  document.getElementById("events").replaceChildren(...(all.length ? all : [{ at: null, text: "Nothing happened." }]).map((event) =>
    element("li", {}, event.at === null ? element("span") : element("time", { datetime: new Date(event.at * 1000).toISOString() },
                                                                      clockText(event.at, true)),
            element("span", event.kind ? { class: event.kind } : {}, event.text))));
}

// ---- asking

function showProblem(text) {
  const problem = document.getElementById("problem");
  problem.hidden = !text;
  put("problem", text);
  document.body.classList.toggle("is-stale", Boolean(text));
  if (!text) return;
  put("health", "unknown");
  document.getElementById("health").className = "health";
}

function sinceText() {
  return view.live ? ` since ${clockText(view.live.at_unix_s, true)}` : "";
}

async function refreshLive() {
  try {
    const live = await ask("/api/live");
    showProblem(live.problem ? `No figures${sinceText()}: ${live.problem}. Trying again.` : "");
    if (live.problem) return;
    view.live = live;
    showHead();
    showTotals();
    showPaths(false);
    showPeers();
    showFlows();
    put("updated", `As of ${clockText(live.at_unix_s, true)}.`);
    document.body.dataset.updates = Number(document.body.dataset.updates || 0) + 1;
  } catch (error) {
    showProblem(`No figures${sinceText()}: braid-web does not answer (${error.message}). Trying again.`);
  }
}

async function refreshPast() {
  try {
    const past = await ask("/api/past");
    if (past.problem) return;
    view.past = past;
    showDone();
    showEvents();
  } catch { /* what is now is asked more often, and says so */ }
}

async function refreshDay() {
  if (view.span <= 3600) return;
  try {
    view.day = await ask("/api/day");
  } catch { /* as above */ }
}

/** Calls again and again while somebody looks, never twice at once. */
function keepFresh(refresh, every) {
  let timer = null, isBusy = false;
  const again = async () => {
    clearTimeout(timer);
    if (isBusy || document.hidden) return;
    isBusy = true;
    await refresh();
    isBusy = false;
    timer = setTimeout(again, every);
  };
  document.addEventListener("visibilitychange", again);
  again();
  return again;
}

function redraw() {
  if (view.live) showPaths(true);
}

function choose(peer) {
  view.peer = peer;
  document.getElementById("peer").value = peer;
  again.forEach((refresh) => refresh());
}

const again = [keepFresh(refreshLive, LIVE_MS), keepFresh(refreshPast, PAST_MS), keepFresh(refreshDay, DAY_MS)];
document.getElementById("peer").addEventListener("change", (event) => choose(event.target.value));
for (const button of document.querySelectorAll("[data-span]")) {
  button.addEventListener("click", async () => {
    view.span = Number(button.dataset.span);
    for (const each of document.querySelectorAll("[data-span]")) each.setAttribute("aria-pressed", each === button);
    await refreshDay();
    redraw();
  });
}
document.getElementById("more").addEventListener("toggle", redraw);
document.getElementById("idle").addEventListener("toggle", () => view.live && showFlows());
new ResizeObserver(redraw).observe(document.getElementById("paths"));
