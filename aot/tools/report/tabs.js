// --- the other tabs -------------------------------------------------------------------------------------------------
function table(columns, rows, go) {
  const body = el("tbody"), head = el("tr");
  let order = -1, up = false;
  const fill = () => body.replaceChildren(...rows.map((row) => el("tr", go ? { class: "go", "data-call": row.call ?? -1, onclick: () => go(row) } : {}, columns.map(([, key, show, kind]) => el("td", { class: kind || "" }, show ? show(row[key], row) : String(row[key] ?? ""))))));
  columns.forEach(([title, key, , kind], i) => head.append(el("th", { class: kind || "", onclick: () => {
    up = order === i ? !up : false; order = i;
    rows.sort((a, b) => (a[key] > b[key] ? 1 : a[key] < b[key] ? -1 : 0) * (up ? 1 : -1)); fill();
  } }, title)));
  fill();
  return el("table", {}, el("thead", {}, head), body);
}
function overview(view) {
  const largest = [...calls].sort((a, b) => b.median - a.median).slice(0, 12), total = calls.reduce((s, c) => s + c.median, 0);
  const options = Object.entries(F.options).filter(([, v]) => v && v.length !== 0).map(([k, v]) => `${k} ${v}`).join(", ");
  view.append(el("h2", {}, "Model"), facts([["file", F.file], ["inputs", F.inputs.map((t) => [t, el("br")]).flat()], ["outputs", F.outputs.map((t) => [t, el("br")]).flat()],
    ["precision", F.precision], ["weights", bytes(F.weights)], ["arena", F.arena == null ? "" : bytes(F.arena)], ["options", options], ["notes", F.notes.join("; ")], ["machine", F.triple], ["hash", F.hash]]));
  if (F.same_code === false) view.append(el("p", { class: "warn" }, "The model, compiled anew, has another hash than the library: graph, loops and memory may not be the library's."));
  view.append(el("h2", {}, "An inference"), facts([...(F.sizes ? [["sizes", F.sizes]] : []), ["median", `${time(F.median)} (least ${time(F.least)}, ${F.runs} runs, ${F.threads} threads)`], ["kernels", `${calls.length} calls, together ${time(total)}`],
    ["work", F.work ? `${flops(F.work)}, ${(F.work / F.median / 1e9).toFixed(1)} GFLOP/s` : "depends on data"]]));
  view.append(el("h2", {}, "Longest calls"), callTable(largest));
}
const callTable = (rows) => table([["#", "index", null, "n"], ["kernel", "kernel"], ["layers", "layers", (v) => v.join(", "), "w"], ["median", "median", (v) => time(v), "n"], ["%", "percent", (v) => fixed(v), "n"], ["work", "work", (v) => flops(v), "n"], ["traffic", "traffic", (v) => bytes(v), "n"], ["of limit", "roof", (v, r) => v == null ? "" : `${fixed(v, 0)} % ${r.bound === "m" ? "memory" : "arithmetic"}`, "n"]],
  rows.map((c) => ({ ...c, call: c.index })), (row) => select(row.index));

function squarify(items, x, y, w, h, out = []) {
  items = items.filter((i) => i.value > 0);
  let total = items.reduce((s, i) => s + i.value, 0);
  while (items.length) {
    const side = Math.min(w, h), unit = (w * h) / total;
    let n = 1, sum = items[0].value;
    const worst = (s, k) => { const t = (s * unit) / side; return Math.max(...[items[0], items[k - 1]].map((i) => { const l = (i.value * unit) / t; return Math.max(t / l, l / t); })); };
    while (n < items.length && worst(sum + items[n].value, n + 1) <= worst(sum, n)) sum += items[n++].value;
    const thick = (sum * unit) / side;
    let along = 0;
    for (const item of items.slice(0, n)) {
      const length = (item.value * unit) / thick;
      out.push(w >= h ? { item, x, y: y + along, w: thick, h: length } : { item, x: x + along, y, w: length, h: thick });
      along += length;
    }
    if (w >= h) { x += thick; w -= thick; } else { y += thick; h -= thick; }
    total -= sum; items = items.slice(n);
  }
  return out;
}
function tree(items) {
  const box = el("div", { class: "tree" });
  for (const { item, x, y, w, h } of squarify([...items].sort((a, b) => b.value - a.value), 0, 0, 100, 100))
    box.append(el("div", { style: `left:${x}%;top:${y}%;width:${w}%;height:${h}%;background:${item.color}`, title: item.title, "data-call": item.call, onclick: item.go }, ...(w > 5 && h > 4 ? [el("p", {}, item.text)] : []), ...(w > 5 && h > 8 ? [el("p", {}, item.figure)] : [])));
  return box;
}
function times(view) {
  view.append(el("h2", {}, "Time of kernel calls"), tree(calls.map((c) => ({ value: c.median, call: c.index, color: family(c.layers.join(" ") + c.kernel), title: `${c.kernel}\n${label(c)}\n${time(c.median)}, ${fixed(c.percent)} %`, text: title(c, 40), figure: `${fixed(c.percent)} %`, go: () => select(c.index) }))));
  view.append(el("h2", {}, "Calls one after another, in inferences in a row"), timeline(view.clientWidth - 40));
  view.append(el("p", { class: "dim" }, `Each line is an inference of one request, which ${F.threads} threads work on together; gaps between calls are the hand-over to them.`));
  view.append(el("h2", {}, "All calls"), callTable(calls));
}
function timeline(width) {
  const runs = [...new Set(F.timeline.map((s) => s.run))], start = runs.map((r) => Math.min(...F.timeline.filter((s) => s.run === r).map((s) => s.begin)));
  const end = Math.max(...F.timeline.map((s) => s.begin + s.seconds - start[s.run]), 1e-9), left = 60, scale = (width - left - 10) / end;
  const picture = svg("svg", { width, height: runs.length * 34 + 30, id: "timeline" });
  for (const r of runs) picture.append(svg("text", { x: 4, y: r * 34 + 24 }, `run ${r + 1}`));
  for (const s of F.timeline) {
    const c = calls[s.call], x = left + (s.begin - start[s.run]) * scale;
    const shape = svg("rect", { x, y: s.run * 34 + 8, width: Math.max(s.seconds * scale, 0.5), height: 24, fill: family(c.layers.join(" ") + c.kernel), stroke: "#fff", "stroke-width": 0.5, "data-call": c.index }, undefined, () => select(c.index));
    picture.append(titled(shape, `${c.kernel}\n${label(c)}\n${time(s.seconds)}`));
  }
  for (let i = 0; i <= 4; i++) picture.append(svg("text", { x: left + (i / 4) * end * scale - (i === 4 ? 70 : 0), y: runs.length * 34 + 24 }, time((i / 4) * end)));
  return picture;
}
function roofline(view) {
  const width = Math.min(view.clientWidth - 40, 1100), height = 520, pad = 60, R = F.roofline;
  const points = calls.filter((c) => c.work && c.traffic && c.median > 0).map((c) => ({ c, x: c.work / c.traffic, y: c.work / c.median }));
  view.append(el("h2", {}, "Arithmetic and memory: calls against the limits of this machine"));
  if (!points.length) { view.append(el("p", { class: "dim" }, "The work of the calls depends on data.")); return; }
  const xs = points.map((p) => p.x), x0 = Math.log10(Math.min(...xs, 0.05)), x1 = Math.log10(Math.max(...xs, 200)), y1 = Math.log10(Math.max(R.flops, ...points.map((p) => p.y)) * 1.6), y0 = Math.min(y1 - 3, Math.log10(Math.min(...points.map((p) => p.y))) - 0.1);
  const X = (v) => pad + ((Math.log10(v) - x0) / (x1 - x0)) * (width - pad - 15), Y = (v) => height - 40 - ((Math.log10(v) - y0) / (y1 - y0)) * (height - 60);
  const picture = svg("svg", { width, height, id: "roofline" });
  for (let e = Math.ceil(x0); e <= x1; e++) picture.append(svg("line", { x1: X(10 ** e), x2: X(10 ** e), y1: 10, y2: height - 40, stroke: "#e4e7ec" }), svg("text", { x: X(10 ** e) - 8, y: height - 24 }, String(10 ** e)));
  for (let e = Math.ceil(y0); e <= y1; e++) picture.append(svg("line", { x1: pad, x2: width - 15, y1: Y(10 ** e), y2: Y(10 ** e), stroke: "#e4e7ec" }), svg("text", { x: 4, y: Y(10 ** e) + 4 }, `${+(10 ** (e - 9)).toPrecision(2)}`));
  picture.append(svg("text", { x: width / 2 - 60, y: height - 6 }, "FLOP per byte of traffic"), svg("text", { x: 4, y: 10 }, "GFLOP/s"));
  R.bandwidth.forEach(([size, speed], i) => {
    const knee = R.flops / speed, begin = Math.max(10 ** x0, 10 ** y0 / speed), color = ["#2f5fd0", "#7a5af8", "#b42318"][i % 3];
    picture.append(svg("polyline", { points: `${X(begin)},${Y(begin * speed)} ${X(knee)},${Y(R.flops)} ${width - 15},${Y(R.flops)}`, fill: "none", stroke: color, "stroke-width": 1.5 }));
    picture.append(svg("text", { x: width - 190, y: height - 100 + 16 * i, style: `fill:${color}` }, `${["reading L2", "reading L3", "reading memory"][i] || bytes(size)}: ${(speed / 1e9).toFixed(0)} GB/s`));
  });
  picture.append(svg("text", { x: width - 160, y: Y(R.flops) - 6 }, `${(R.flops / 1e9).toFixed(0)} GFLOP/s`));
  for (const { c, x, y } of points) picture.append(titled(svg("circle", { cx: X(x), cy: Y(y), r: 3 + Math.sqrt(c.percent || 0) * 2, fill: family(c.layers.join(" ") + c.kernel), stroke: "#475467", "fill-opacity": 0.85, "data-call": c.index }, undefined, () => select(c.index)), `${c.kernel}\n${label(c)}\n${(y / 1e9).toFixed(1)} GFLOP/s, ${x.toFixed(2)} FLOP a byte, ${fixed(c.percent)} %`));
  view.append(picture, el("p", { class: "dim" }, "The area of a circle is its share of the time. Limits are those of single-precision multiply-adds and of reading, measured here just before; bytes and 16-bit floats may exceed them, and so does all if the machine was busy then."));
}
function memory(view) {
  view.append(el("h2", {}, "Arena over the steps of an inference"));
  if (!F.memory || !F.memory.length) view.append(el("p", { class: "dim" }, F.memory ? "Places depend on sizes." : "Give the model with --model to see it."));
  else {
    const width = view.clientWidth - 40, height = 420, left = 70, last = Math.max(...F.memory.map((m) => m.last)) + 1, top = Math.max(...F.memory.map((m) => m.offset + m.size));
    const X = (s) => left + (s / last) * (width - left - 10), Y = (b) => height - 30 - (b / top) * (height - 45), picture = svg("svg", { width, height, id: "memory" });
    for (let i = 0; i <= 4; i++) picture.append(svg("text", { x: 4, y: Y((top * i) / 4) + 4 }, bytes(Math.round((top * i) / 4))), svg("line", { x1: left, x2: width - 10, y1: Y((top * i) / 4), y2: Y((top * i) / 4), stroke: "#e4e7ec" }));
    picture.append(svg("text", { x: left, y: height - 8 }, "step 0"), svg("text", { x: width - 60, y: height - 8 }, `step ${last - 1}`));
    for (const m of F.memory) {
      const call = calls.findIndex((c) => c.layers.length && m.layers.includes(c.layers[0]));
      picture.append(titled(svg("rect", { x: X(m.first), y: Y(m.offset + m.size), width: Math.max(X(m.last + 1) - X(m.first), 1), height: Math.max((m.size / top) * (height - 45), 0.7), fill: `hsl(${hue(m.name)},60%,75%)`, stroke: "#fff", "stroke-width": 0.6, "data-call": call }, undefined, () => select(call)), `${m.layers.join(", ")}\n${m.shape}, ${bytes(m.size)} at ${m.offset}\nsteps ${m.first} to ${m.last}`));
    }
    const live = Array.from({ length: last }, (_, s) => F.memory.filter((m) => m.first <= s && s <= m.last).reduce((t, m) => t + m.size, 0)), most = Math.max(...live);
    view.append(picture, el("p", { class: "dim" }, `${F.memory.length} values share ${bytes(top)}; the most that is alive at once is ${bytes(most)}, in step ${live.indexOf(most)}; all of them together are ${bytes(F.memory.reduce((t, m) => t + m.size, 0))}.`));
  }
}
function weightsTab(view) {
  view.append(el("h2", {}, "Sizes of constants, as the optimised graph has them"));
  if (!F.constants) { view.append(el("p", { class: "dim" }, `${bytes(F.weights)} in all. Give the model with --model to see them.`)); return; }
  const reader = (w) => nodes.find((n) => w.readers.includes(n.name));
  const go = (w) => { const n = reader(w); if (n) select(n.call, n.id); };
  view.append(tree(F.constants.slice(0, 400).map((w) => ({ value: w.bytes, call: -2, color: `hsl(${hue(w.type.split("[")[0])},55%,82%)`, title: `${w.name}\n${w.type}, ${bytes(w.bytes)}`, text: short(w.name, 40), figure: bytes(w.bytes), go: () => go(w) }))));
  view.append(el("p", { class: "dim" }, `${F.constants.length} constants, ${bytes(F.constants.reduce((t, w) => t + w.bytes, 0))}; packed for kernels they are ${bytes(F.weights)} in the library.`));
  view.append(table([["constant", "name", null, "w"], ["type", "type"], ["bytes", "bytes", (v) => bytes(v), "n"], ["read by", "readers", (v) => v.join(", "), "w"]], F.constants.slice(0, 300), go));
}
function against(view) {
  const O = F.against, key = (c) => c.layers.join("\n");
  const mine = new Map(), theirs = new Map();
  for (const c of calls) mine.set(key(c), [...(mine.get(key(c)) || []), c]);
  for (const c of O.calls) theirs.set(key(c), [...(theirs.get(key(c)) || []), c]);
  const total = (list) => (list || []).reduce((t, c) => t + c.median, 0), change = (a, b) => a && b ? a / b : a ? Infinity : 0;
  const ratio = (v) => el("span", { class: v < 0.95 ? "better" : v > 1.05 ? "worse" : "" }, v === Infinity ? "only here" : v === 0 ? "only there" : v.toFixed(2));
  const rows = [...new Set([...mine.keys(), ...theirs.keys()])].map((k) => ({ layers: k.split("\n").join(", "), now: total(mine.get(k)), old: total(theirs.get(k)), call: mine.get(k)?.[0].index ?? -1 }));
  rows.forEach((r) => { r.change = change(r.now, r.old); r.difference = r.now - r.old; });
  rows.sort((a, b) => Math.abs(b.difference) - Math.abs(a.difference));
  view.append(el("h2", {}, `${F.file} against ${O.file}`), table([["", "what"], [F.file, "now", null, "n"], [O.file, "old", null, "n"]], [
    { what: "median of an inference", now: time(F.median), old: time(O.median) }, { what: "least", now: time(F.least), old: time(O.least) }, { what: "calls", now: calls.length, old: O.calls.length },
    { what: "weights", now: bytes(F.weights), old: bytes(O.weights) }, { what: "precision", now: F.precision, old: O.precision }, { what: "target", now: F.options.target, old: O.options.target }, { what: "hash", now: F.hash.slice(0, 16), old: O.hash.slice(0, 16) }]));
  view.append(el("h2", {}, "Calls by the layers that they compute"), table([["layers", "layers", null, "w"], ["here", "now", (v) => time(v), "n"], ["there", "old", (v) => time(v), "n"], ["difference", "difference", (v) => (v < 0 ? "−" : "+") + time(Math.abs(v)), "n"], ["ratio", "change", ratio, "n"]], rows, (row) => select(row.call)));
}

// --- tabs and search ------------------------------------------------------------------------------------------------
const TABS = { Overview: overview, Graph: graph, Time: times, Roofline: roofline, Memory: memory, Weights: weightsTab, ...(F.against ? { Difference: against } : {}) };
function show(name) {
  if (state.tab === name) return;
  state.tab = name; redraw = null;
  document.querySelectorAll("nav button").forEach((b) => b.classList.toggle("on", b.textContent === name));
  const view = $("view");
  view.replaceChildren(); view.className = name === "Graph" ? "" : "page";
  TABS[name](view);
}
const match = (n, text) => n.name.toLowerCase().includes(text) || n.kind.toLowerCase().includes(text);
function search() {
  const text = $("search").value.trim().toLowerCase();
  state.filter = text;
  const found = text ? nodes.filter((n) => match(n, text)).slice(0, 40).map((n) => [`${n.kind} ${n.name}`, () => { show("Graph"); select(n.call, n.id, true); }]) : [];
  if (text) for (const c of calls.filter((c) => c.kernel.toLowerCase().includes(text)).slice(0, 20)) found.push([`kernel ${c.kernel}: ${label(c)}`, () => select(c.index, -1, true)]);
  $("found").replaceChildren(...found.map(([name, go]) => el("li", { onclick: () => { $("found").replaceChildren(); go(); } }, name)));
  if (redraw) redraw();
}
$("search").oninput = search;
$("search").onkeydown = (e) => { if (e.key === "Enter") $("found").firstChild?.click(); if (e.key === "Escape") { e.target.value = ""; search(); } };
document.onkeydown = (e) => { if (e.key === "/" && e.target !== $("search")) { e.preventDefault(); $("search").focus(); } };
document.title = `${F.name} – aot report`;
$("name").textContent = F.name;
$("about").textContent = `${F.file}, ${F.precision}, ${calls.length} calls, weights ${bytes(F.weights)}, ${time(F.median)} with ${F.threads} threads, aot ${F.aot}`;
$("tabs").append(...Object.keys(TABS).map((name) => el("button", { onclick: () => show(name) }, name)));
show("Overview");
