"use strict";
(() => {
  const read = () => JSON.parse(document.getElementById("page").textContent);
  let page = read();
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const settings = {
    responsive: false, // plotly would forget the height; `fit` follows the width of the page
    displaylogo: false,
    showSendToCloud: false, // the page sends nothing anywhere
    displayModeBar: window.innerWidth < 700 ? false : "hover",
    modeBarButtonsToRemove: ["lasso2d", "select2d"],
  };
  const PRINTED = { width: 680, height: 350 }; // pixels: two stand on a sheet of A4 or US Letter
  const placed = () => Object.entries(page.figures).map(([id, figure]) => ({
    figure, box: document.getElementById(id), narrow: null, width: null,
  }));
  let figures = placed();
  const theme = () => (dark.matches ? page.themes.dark : page.themes.light);

  // The library is kept compressed. It is unpacked and compiled beside the page, which can be read
  // and searched meanwhile.
  const library = async () => {
    if (window.Plotly) return; // a server sent it as a file of its own
    const packed = atob(document.getElementById("plotly").textContent);
    const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
    const script = document.createElement("script");
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    script.src = URL.createObjectURL(await new Response(unpacked).blob());
    await new Promise((resolve, reject) => {
      script.onload = resolve;
      script.onerror = reject;
      document.head.append(script);
    });
  };

  // A page that is not shown has no width; its figures stay as they are.
  const isOfOtherWidth = ({ box, width }) => box.clientWidth && box.clientWidth !== width;
  const wantsNarrow = ({ figure, box, narrow }) => (
    box.clientWidth ? box.clientWidth < figure.narrow.below : narrow
  );
  const draw = async (one) => {
    one.narrow = wantsNarrow(one);
    one.width = one.box.clientWidth || one.width;
    const { figure, box, narrow, width } = one;
    // What a reader has zoomed into stays so when other values come, in the same form.
    const put = box.dataset.narrow === String(narrow) ? Plotly.react : Plotly.newPlot;
    box.dataset.narrow = narrow;
    const layout = structuredClone(narrow ? figure.narrow.layout : figure.layout);
    Object.assign(layout, { width, template: theme(), uirevision: "same" });
    await put(box, figure.data, layout, settings);
    if (narrow) { // as high as its panels and the lines of its legend need
      const { t, b } = box._fullLayout._size;
      await Plotly.relayout(box, { height: figure.narrow.plot + t + b });
    }
    // Its label describes the figure, and the keys lead through its points.
    for (const drawing of box.querySelectorAll(".main-svg")) {
      drawing.setAttribute("aria-hidden", "true");
    }
  };

  // One figure at a time: the page scrolls while they appear.
  const drawAll = async () => {
    for (const one of figures) {
      await draw(one);
      one.box.style.minHeight = "";
      one.box.dataset.drawn = Math.round(performance.now());
      await new Promise((next) => setTimeout(next));
    }
    document.documentElement.dataset.drawn = "yes";
  };

  const start = async () => {
    await library();
    await drawAll();
    const all = (change) => figures.forEach((one) => Plotly.relayout(one.box, change(one)));
    dark.addEventListener("change", () => all(() => ({ template: theme() })));
    let turn = Promise.resolve(); // a page that is resized again waits until the figures stand
    const fit = async () => {
      for (const one of figures) if (isOfOtherWidth(one)) await draw(one);
    };
    window.addEventListener("resize", () => { turn = turn.then(fit); });
    window.addEventListener("beforeprint", () => all((one) => {
      const { width, height, legend } = one.box._fullLayout;
      one.screen = { width, height, "legend.y": legend?.y };
      const paper = one.narrow ? height : Math.min(height, PRINTED.height);
      const below = legend?.y * height / paper; // as far below the axis as on the screen
      return { template: page.themes.light, width: PRINTED.width, height: paper, "legend.y": below };
    }));
    window.addEventListener("afterprint", () => all(({ screen }) => ({ template: theme(), ...screen })));
    document.addEventListener("renewed", () => { // a live page has other figures now
      page = read();
      figures = placed();
      turn = turn.then(drawAll);
    });
  };

  const sayWhy = (error) => {
    const reason = typeof DecompressionStream === "undefined"
      ? "it cannot unpack gzip (DecompressionStream), as browsers since 2023 can"
      : String(error);
    for (const { box } of figures) {
      box.style.minHeight = "";
      box.textContent = `This browser cannot draw the figure: ${reason}. `
        + `What it would show: ${box.getAttribute("aria-label")}`;
    }
    document.documentElement.dataset.drawn = "no";
  };

  window.addEventListener("load", () => setTimeout(() => start().catch(sayWhy)));
})();
