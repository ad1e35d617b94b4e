"use strict";
// The page's script: facts -> tabs; `select` shows a call or a layer in the panel on the right, from all of them.
const F = JSON.parse(document.getElementById("facts").textContent);
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const BOX = { w: 170, h: 34 };
const state = { tab: "", call: -1, node: -1, color: "operation", filter: "" };
const calls = F.calls, nodes = F.graph.nodes, byId = new Map(nodes.map((n) => [n.id, n]));

function el(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) key.startsWith("on") ? (e[key] = value) : e.setAttribute(key, value);
  e.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined));
  return e;
}
function svg(tag, attributes, text, click) {
  const e = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  if (text !== undefined) e.textContent = text;
  if (click) { e.addEventListener("click", click); e.classList.add("go"); }
  return e;
}
const titled = (shape, text) => { shape.append(svg("title", {}, text)); return shape; };
const bytes = (n) => n == null ? "–" : n >= 1e9 ? (n / 1e9).toFixed(2) + " GB" : n >= 1e6 ? (n / 1e6).toFixed(2) + " MB" : n >= 1e3 ? (n / 1e3).toFixed(1) + " kB" : n + " B";
const time = (s) => s >= 1 ? s.toFixed(3) + " s" : s >= 1e-3 ? (s * 1e3).toFixed(3) + " ms" : (s * 1e6).toFixed(1) + " µs";
const flops = (n) => n == null ? "–" : n >= 1e9 ? (n / 1e9).toFixed(2) + " GFLOP" : n >= 1e6 ? (n / 1e6).toFixed(2) + " MFLOP" : (n / 1e3).toFixed(1) + " kFLOP";
const fixed = (n, digits = 1) => n == null ? "" : n.toFixed(digits);
const short = (text, length) => text.length <= length ? text : "…" + text.slice(1 - length);
const label = (call) => call.layers.length ? call.layers.join(", ") : call.kernel;
const title = (call, length) => short(call.layers[0] || call.kernel, length) + (call.layers.length > 1 ? ` +${call.layers.length - 1}` : "");
function hue(text) { let h = 0; for (const c of text) h = (h * 31 + c.charCodeAt(0)) % 360; return h; }
const FAMILIES = [[/conv/i, "#9fc5f8"], [/matmul|gemm|linear|einsum/i, "#b4c7ff"], [/pool|reduce|mean/i, "#ffd8a8"], [/relu|sigmoid|tanh|swish|clamp|elu|gelu|softmax|hswish|exp/i, "#b7e4c7"], [/add|sub|mul|div|pow|max|min|sqrt|norm|mvn/i, "#ffe999"], [/reshape|transpose|squeeze|concat|split|slice|gather|pad|tile|broadcast/i, "#e3d3f5"], [/parameter|result|readvalue|assign/i, "#d0d5dd"]];
const family = (kind) => (FAMILIES.find(([pattern]) => pattern.test(kind)) || [0, "#f3c4d0"])[1];
const heat = (share) => `hsl(${Math.round(50 - 50 * Math.min(1, share))},90%,${Math.round(93 - 38 * Math.min(1, share))}%)`;
const hottest = Math.max(...calls.map((c) => c.percent || 0), 1e-9);
function colorOf(n) {
  if (state.color === "time") return n.call < 0 ? "#ffffff" : heat((calls[n.call].percent || 0) / hottest);
  if (state.color === "kernel") return n.call < 0 ? "#ffffff" : `hsl(${(n.call * 137) % 360},65%,82%)`;
  if (state.color === "type") return `hsl(${hue(n.shape.split("[")[0] || "-")},60%,82%)`;
  return family(n.kind);
}

// --- selection ------------------------------------------------------------------------------------------------------
function select(call, node = -1, show = false) {
  state.call = call; state.node = node;
  const at = node >= 0 ? byId.get(node) : nodes.find((n) => n.call === call);
  if (show && at && state.tab === "Graph") center(at);
  detail(at);
  document.querySelectorAll("[data-call]").forEach((e) => e.classList.toggle("on", +e.dataset.call === call && call >= 0));
  if (redraw) redraw();
}
function link(text, go) { return el("a", { onclick: go }, text); }
function detail(at) {
  const panel = $("detail"), c = calls[state.call];
  panel.replaceChildren();
  if (state.node >= 0 && at) {
    panel.append(el("h2", {}, at.name), facts([["operation", at.kind], ["gives", at.shape], ["constants", at.constants.join("; ")]]));
    if (at.call < 0) panel.append(el("p", { class: "dim" }, "No kernel computes it: it is a view, or lies in the caller's memory."));
  }
  if (!c) return;
  panel.append(el("h2", {}, `call ${c.index}: ${c.kernel}`));
  const rate = c.work && c.median ? `${(c.work / c.median / 1e9).toFixed(1)} GFLOP/s` : "";
  const moved = c.traffic && c.median ? ` (${(c.traffic / c.median / 1e9).toFixed(1)} GB/s)` : "";
  panel.append(facts([
    ["layers", c.layers.map((name) => { const n = nodes.find((m) => m.name === name); return [n ? link(name, () => { show("Graph"); select(n.call, n.id, true); }) : name, el("br")]; }).flat()],
    ["time", c.median ? `${time(c.median)}, least ${time(c.least)}, ${fixed(c.percent)} % of all calls` : "did not run"],
    ["work", c.work == null ? "depends on sizes" : `${flops(c.work)}${rate ? ", " + rate : ""}`],
    ["traffic", c.traffic == null ? "depends on sizes" : bytes(c.traffic) + moved],
    ["of the limit", c.roof == null ? "" : `${fixed(c.roof, 0)} % (${c.bound === "m" ? "memory" : "arithmetic"})`]]));
  const seen = nodes.find((n) => n.call === c.index);
  if (seen && state.tab !== "Graph") panel.append(el("p", {}, link("show in the graph", () => { show("Graph"); select(c.index, seen.id, true); })));
  if (F.groups && F.groups[c.index]) panel.append(el("h2", {}, "Group and schedule"), el("pre", { id: "group" }, F.groups[c.index]));
  if (F.loops) panel.append(el("h2", {}, "Loop nest"), el("pre", { id: "loops" }, F.loops[c.kernel] || "left out: the page would be too large; aot dump MODEL --stage loops --kernel " + c.kernel));
}
const facts = (rows) => el("dl", {}, rows.filter(([, v]) => v !== "" && v != null && v.length !== 0).map(([k, v]) => [el("dt", {}, k), el("dd", {}, ...[v].flat())]));

// --- graph ----------------------------------------------------------------------------------------------------------
let redraw = null;
const eye = { x: 0, y: 0, scale: 0 };
const bounds = nodes.reduce((b, n) => ({ x0: Math.min(b.x0, n.x), x1: Math.max(b.x1, n.x), y0: Math.min(b.y0, n.y), y1: Math.max(b.y1, n.y) }), { x0: 1e9, x1: -1e9, y0: 1e9, y1: -1e9 });
const lines = F.graph.edges.map((points) => ({ points, y0: Math.min(points[0][1], points.at(-1)[1]), y1: Math.max(points[0][1], points.at(-1)[1]) }));
function fit(width, height) {
  const w = bounds.x1 - bounds.x0 + BOX.w + 60, h = bounds.y1 - bounds.y0 + BOX.h + 60;
  eye.scale = Math.max(Math.min(width / w, height / h, 1.2), 0.004);
  if (eye.scale < 0.35 && h / height > 2 * (w / width)) {  // long and narrow: begin where the network begins
    eye.scale = Math.min(width / w, 0.8);
    eye.x = (bounds.x0 + bounds.x1) / 2; eye.y = bounds.y0 + height / 2 / eye.scale - 50;
    return;
  }
  eye.x = (bounds.x0 + bounds.x1) / 2; eye.y = (bounds.y0 + bounds.y1) / 2;
}
function center(n) { eye.x = n.x; eye.y = n.y; eye.scale = Math.max(eye.scale, 0.8); }
function graph(view) {
  const canvas = el("canvas", { class: "graph" }), g = canvas.getContext("2d");
  const choose = el("select", { title: "Colours", onchange: () => { state.color = choose.value; legend(); redraw(); } }, ["operation", "time", "kernel", "type"].map((v) => el("option", v === state.color ? { selected: "" } : {}, v)));
  const zoom = (f) => () => { eye.scale *= f; redraw(); };
  view.append(canvas, el("div", { class: "bar" }, el("button", { id: "zoom-in", onclick: zoom(1.4) }, "+"), el("button", { id: "zoom-out", onclick: zoom(1 / 1.4) }, "−"),
    el("button", { onclick: () => { fit(view.clientWidth, view.clientHeight); redraw(); } }, "fit"), choose, el("span", { class: "dim" }, `${nodes.length} layers`)));
  const key = el("div", { class: "legend" });
  view.append(key);
  function legend() {
    const items = state.color === "operation" ? [...new Map(nodes.map((n) => [n.kind, family(n.kind)]))].slice(0, 28) : state.color === "time" ? [0, 0.5, 1].map((s) => [`${fixed(s * hottest)} %`, heat(s)]) : state.color === "type" ? [...new Map(nodes.map((n) => [n.shape.split("[")[0], colorOf(n)]))] : [["one colour a kernel call: layers of one colour are fused", "#fff"]];
    key.replaceChildren(...items.map(([name, color]) => el("span", {}, el("i", { style: `background:${color}` }), name)));
  }
  redraw = () => {
    const ratio = devicePixelRatio || 1, w = view.clientWidth, h = view.clientHeight;
    if (canvas.width !== w * ratio || canvas.height !== h * ratio) { canvas.width = w * ratio; canvas.height = h * ratio; canvas.style.width = w + "px"; canvas.style.height = h + "px"; }
    if (!eye.scale) fit(w, h);
    g.setTransform(ratio, 0, 0, ratio, 0, 0); g.clearRect(0, 0, w, h);
    g.translate(w / 2, h / 2); g.scale(eye.scale, eye.scale); g.translate(-eye.x, -eye.y);
    const top = eye.y - h / 2 / eye.scale - BOX.h, low = eye.y + h / 2 / eye.scale + BOX.h, left = eye.x - w / 2 / eye.scale - BOX.w, right = eye.x + w / 2 / eye.scale + BOX.w;
    g.strokeStyle = "#98a2b3"; g.lineWidth = Math.max(1, 0.7 / eye.scale); g.beginPath();
    for (const line of lines) {
      if (line.y1 < top || line.y0 > low) continue;
      const p = line.points;
      g.moveTo(p[0][0], p[0][1] + BOX.h / 2);
      for (let i = 1; i < p.length; i++) {
        const y0 = p[i - 1][1] + (i === 1 ? BOX.h / 2 : 0), y1 = p[i][1] - (i === p.length - 1 ? BOX.h / 2 : 0), m = (y0 + y1) / 2;
        p[i][0] === p[i - 1][0] ? g.lineTo(p[i][0], y1) : g.bezierCurveTo(p[i - 1][0], m, p[i][0], m, p[i][0], y1);
      }
    }
    g.stroke();
    g.font = "12px system-ui, sans-serif"; g.textAlign = "center"; g.textBaseline = "middle";
    const readable = eye.scale > 0.42;
    for (const n of nodes) {
      if (n.y < top || n.y > low || n.x < left || n.x > right) continue;
      const chosen = state.node === n.id || (state.node < 0 && state.call >= 0 && n.call === state.call);
      g.fillStyle = colorOf(n); g.strokeStyle = chosen ? "#1d2433" : "#667085"; g.lineWidth = chosen ? 3 : state.call >= 0 && n.call === state.call ? 2 : 0.8;
      g.globalAlpha = state.filter && !match(n, state.filter) ? 0.25 : 1;
      g.beginPath(); g.roundRect(n.x - BOX.w / 2, n.y - BOX.h / 2, BOX.w, BOX.h, 5); g.fill(); g.stroke();
      if (readable) {
        g.fillStyle = "#1d2433"; g.fillText(short(n.kind, 26), n.x, n.y - 7, BOX.w - 8);
        g.fillStyle = "#667085"; g.font = "10px system-ui, sans-serif"; g.fillText(short(n.shape || n.name, 30), n.x, n.y + 8, BOX.w - 8); g.font = "12px system-ui, sans-serif";
      }
      g.globalAlpha = 1;
    }
  };
  const where = (e) => { const r = canvas.getBoundingClientRect(); return [(e.clientX - r.left - r.width / 2) / eye.scale + eye.x, (e.clientY - r.top - r.height / 2) / eye.scale + eye.y]; };
  const hit = (e) => { const [x, y] = where(e); return nodes.find((n) => Math.abs(n.x - x) <= BOX.w / 2 && Math.abs(n.y - y) <= BOX.h / 2); };
  let drag = null;
  canvas.onpointerdown = (e) => { drag = { x: e.clientX, y: e.clientY, moved: false }; canvas.setPointerCapture(e.pointerId); };
  canvas.onpointermove = (e) => {
    if (!drag) { const n = hit(e); canvas.title = n ? `${n.kind} ${n.name}\n${n.shape}` : ""; return; }
    if (Math.abs(e.clientX - drag.x) + Math.abs(e.clientY - drag.y) < 4 && !drag.moved) return;
    eye.x -= (e.clientX - drag.x) / eye.scale; eye.y -= (e.clientY - drag.y) / eye.scale;
    drag = { x: e.clientX, y: e.clientY, moved: true }; redraw();
  };
  canvas.onpointerup = (e) => { const still = drag && !drag.moved; drag = null; if (still) { const n = hit(e); if (n) select(n.call, n.id); else select(-1); } };
  canvas.addEventListener("wheel", (e) => { e.preventDefault(); const [x, y] = where(e), f = Math.exp(-e.deltaY * 0.0015); eye.scale = Math.min(Math.max(eye.scale * f, 0.002), 6); eye.x = x + (eye.x - x) / f; eye.y = y + (eye.y - y) / f; redraw(); }, { passive: false });
  new ResizeObserver(() => redraw && state.tab === "Graph" && redraw()).observe(view);
  legend(); redraw();
}
