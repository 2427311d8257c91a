"use strict";
(() => {
  const page = JSON.parse(document.getElementById("page").textContent);
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
  const library = () => new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = URL.createObjectURL(new Blob([document.getElementById("plotly").textContent]));
    script.onload = resolve;
    script.onerror = reject;
    document.head.append(script);
  });

  // One figure at a time: the page scrolls while they appear.
  const draw = async () => {
    await library();
    for (const [id, figure] of Object.entries(page.figures)) {
      const layout = { ...figure.layout, template: theme() };
      await Plotly.newPlot(id, figure.data, layout, settings);
      document.getElementById(id).dataset.drawn = Math.round(performance.now());
      await new Promise((next) => setTimeout(next));
    }
    dark.addEventListener("change", () => repaint(theme()));
    window.addEventListener("beforeprint", () => repaint(page.themes.light));
    window.addEventListener("afterprint", () => repaint(theme()));
    document.documentElement.dataset.drawn = "yes";
  };

  const table = document.getElementById("trials");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const count = document.getElementById("count");

  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
  };
  // Empty cells stay at the end whichever way the column is sorted.
  const compare = (a, b, up) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const order = typeof a === "number" && typeof b === "number" ? a - b
      : String(a).localeCompare(String(b), undefined, { numeric: true });
    return up ? order : -order;
  };
  const sort = (head) => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    rows.sort((a, b) => compare(value(a, head.cellIndex), value(b, head.cellIndex), up));
    body.append(...rows);
  };
  for (const head of table.tHead.rows[0].cells) {
    head.querySelector("button").addEventListener("click", () => sort(head));
  }

  const filter = (text) => {
    const parts = text.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const content = row.textContent.toLowerCase();
      row.hidden = !parts.every((part) => content.includes(part));
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = `${shown} of ${rows.length} shown`;
  };
  document.getElementById("search").addEventListener("input", (event) => filter(event.target.value));
  filter("");
  window.addEventListener("load", () => setTimeout(draw));
})();
