// The likeliest classes of a picture.
function show(scores) {
  const order = Array.from(scores, (score, k) => [facts.labels[k] ?? `class ${k}`, Number(score)]);
  list(order.sort((a, b) => b[1] - a[1]).slice(0, facts.top));
}
