"use strict";
// Arrow keys move through the points of a figure: left and right along what is drawn in one colour,
// up and down to the next kind of points. Each point is shown, and read to those who do not see it.
(() => {
  const spoken = document.getElementById("spoken");
  const places = new WeakMap();

  const plain = (text) => new DOMParser()
    .parseFromString(String(text ?? "").replaceAll("<br>", ", "), "text/html").body.textContent;
  const written = (value) => (typeof value === "number"
    ? String(Number(value.toPrecision(4))) : plain(value));

  // What can be visited: each series with its points from left to right.
  const seriesOf = (box) => box._fullData.flatMap((trace, curve) => {
    if (trace.visible !== true || trace.hoverinfo === "skip" || !trace.x) return [];
    const points = [...trace.x.keys()].filter((i) => trace.x[i] != null && trace.y[i] != null);
    if (typeof trace.x[points[0]] === "number") points.sort((a, b) => trace.x[a] - trace.x[b]);
    return points.length ? [{ trace, curve, points }] : [];
  });

  const titled = (box, axis) => {
    const { title } = box._fullLayout[`${axis[0]}axis${axis.slice(1)}`];
    return plain(title?.text);
  };
  const reading = (box, { trace, points }, at) => {
    const point = points[at];
    const words = Array.isArray(trace.text) ? plain(trace.text[point]) : "";
    return `${plain(trace.name)}, ${at + 1} of ${points.length}: `
      + `${titled(box, trace.xaxis)} ${written(trace.x[point])}, `
      + `${titled(box, trace.yaxis)} ${written(trace.y[point])}${words && `; ${words}`}`;
  };

  const MOVES = {
    ArrowRight: (place) => ({ ...place, at: place.at + 1 }),
    ArrowLeft: (place) => ({ ...place, at: place.at - 1 }),
    PageDown: (place, n) => ({ ...place, at: place.at + Math.ceil(n / 10) }),
    PageUp: (place, n) => ({ ...place, at: place.at - Math.ceil(n / 10) }),
    Home: (place) => ({ ...place, at: 0 }),
    End: (place, n) => ({ ...place, at: n - 1 }),
    ArrowDown: (place) => ({ series: place.series + 1, at: 0 }),
    ArrowUp: (place) => ({ series: place.series - 1, at: 0 }),
  };
  const within = (value, n) => Math.min(Math.max(value, 0), n - 1);

  const visit = (box, move) => {
    const all = seriesOf(box);
    if (!all.length) return;
    const before = places.get(box) ?? { series: 0, at: -1 };
    const moved = move(before, all[within(before.series, all.length)].points.length);
    const series = within(moved.series, all.length);
    const at = within(moved.at, all[series].points.length);
    places.set(box, { series, at });
    const { trace, curve, points } = all[series];
    const point = { curveNumber: curve, pointNumber: points[at] };
    Plotly.Fx.hover(box, [point], trace.xaxis + trace.yaxis);
    spoken.textContent = reading(box, all[series], at);
  };

  document.addEventListener("keydown", (event) => {
    const box = event.target.closest(".drawing");
    if (!box?._fullData || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Escape") Plotly.Fx.unhover(box);
    if (!(event.key in MOVES)) return;
    event.preventDefault(); // the page stays where it is
    visit(box, MOVES[event.key]);
  });
  document.addEventListener("focusout", (event) => {
    const box = event.target.closest(".drawing");
    if (box?._fullData) Plotly.Fx.unhover(box);
  });
})();
