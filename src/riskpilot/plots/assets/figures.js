"use strict";
(() => {
  const read = () => JSON.parse(document.getElementById("page").textContent);
  let page = read();
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const settings = {
    responsive: true,
    displaylogo: false,
    showSendToCloud: false, // the page sends nothing anywhere
    displayModeBar: window.innerWidth < 700 ? false : "hover",
    modeBarButtonsToRemove: ["lasso2d", "select2d"],
  };
  const theme = () => (dark.matches ? page.themes.dark : page.themes.light);
  const boxes = () => Object.keys(page.figures).map((id) => document.getElementById(id));
  const repaint = (template) => boxes().map((box) => Plotly.relayout(box, { template }));

  // The library is large. As text it costs nothing until the page is open; as a script of its own
  // it is then compiled beside the page, which can be read and searched meanwhile.
  const library = () => window.Plotly ?? new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = URL.createObjectURL(new Blob([document.getElementById("plotly").textContent]));
    script.onload = resolve;
    script.onerror = reject;
    document.head.append(script);
  });

  // One figure at a time: the page scrolls while they appear.
  const drawAll = async () => {
    for (const [id, figure] of Object.entries(page.figures)) {
      const layout = { ...figure.layout, template: theme(), uirevision: "kept" };
      await Plotly.react(id, figure.data, layout, settings);
      document.getElementById(id).dataset.drawn = Math.round(performance.now());
      await new Promise((next) => setTimeout(next));
    }
    document.documentElement.dataset.drawn = "yes";
  };

  const start = async () => {
    await library();
    await drawAll();
    dark.addEventListener("change", () => repaint(theme()));
    window.addEventListener("beforeprint", () => repaint(page.themes.light));
    window.addEventListener("afterprint", () => repaint(theme()));
  };

  document.addEventListener("renewed", () => { // a live page has other figures now
    page = read();
    drawAll();
  });
  window.addEventListener("load", () => setTimeout(start));
})();
