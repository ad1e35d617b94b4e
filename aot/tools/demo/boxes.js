// The things of a picture, each in a box.
const [LEAST, OVERLAP] = [0.25, 0.45]; // a score; the part that two boxes of one thing share

/** Return what a row says: left, top, right, bottom, score and class; `value` gives a number of the row. */
const FORMS = {
  centres: (value) => [...around(value), ...best(value, 4)],
  objects: (value) => {
    const [score, kind] = best(value, 5);
    return [...around(value), score * value(4), kind];
  },
  corners: (value) => [0, 1, 2, 3, 4, 5].map(value),
  detections: (value, width, height) => [value(3) * width, value(4) * height, value(5) * width, value(6) * height, value(2), value(1)],
};

function around(value) {
  const [x, y, width, height] = [0, 1, 2, 3].map(value);
  return [x - width / 2, y - height / 2, x + width / 2, y + height / 2];
}

function best(value, first) {
  let kind = first;
  for (let c = first + 1; c < facts.columns; c++) if (value(c) > value(kind)) kind = c;
  return [value(kind), kind - first];
}

function shared(one, other) {
  const area = ([left, top, right, bottom]) => Math.max(0, right - left) * Math.max(0, bottom - top);
  const both = area([0, 1, 2, 3].map((k) => Math[k < 2 ? "max" : "min"](one[k], other[k])));
  return both / (area(one) + area(other) - both);
}

/** Return the boxes of an output, the surest first, without those of things that a surer one has. */
function boxesOf(data, width, height) {
  const { columns, transposed, form } = facts;
  const rows = data.length / columns;
  const found = [];
  for (let k = 0; k < rows; k++) {
    const value = (c) => Number(data[transposed ? c * rows + k : k * columns + c]);
    const box = FORMS[form](value, width, height);
    if (box[4] >= LEAST) found.push(box);
  }
  const kept = [];
  for (const box of found.sort((a, b) => b[4] - a[4])) {
    if (kept.length === facts.top) break;
    if (!kept.some((other) => other[5] === box[5] && shared(box, other) > OVERLAP)) kept.push(box);
  }
  return kept;
}

function show(data, width, height) {
  const [x, y] = [paper.width / width, paper.height / height];
  const pen = paper.getContext("2d");
  Object.assign(pen, { lineWidth: 2, font: "14px system-ui, sans-serif", textBaseline: "top" });
  list(boxesOf(data, width, height).map(([left, top, right, bottom, score, kind]) => {
    const name = facts.labels[kind] ?? `class ${kind}`;
    pen.strokeStyle = pen.fillStyle = `hsl(${(kind * 137) % 360} 90% 45%)`;
    pen.strokeRect(left * x, top * y, (right - left) * x, (bottom - top) * y);
    pen.fillText(name, left * x + 4, Math.max(0, top * y) + 4);
    return [`${name}: ${[left, top, right, bottom].map((n, k) => Math.round(n * (k % 2 ? y : x)))}`, score];
  }));
}
