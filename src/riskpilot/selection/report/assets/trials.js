"use strict";
(() => {
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

  const box = table.parentElement;
  const showWidth = () => {
    document.getElementById("more").hidden = box.scrollWidth <= box.clientWidth + 1;
  };
  window.addEventListener("resize", showWidth);
  showWidth();
})();
