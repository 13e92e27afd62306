// Evaluates to a report on the open page: its links, tables and facts, and elements with faults. A fact is a name and
// its value: of a record, or one of the overview's figures.
(() => {
  const NARROW_SPACE = /\u202f/g;
  const clean = (text) => text.replace(NARROW_SPACE, "").replace(/\s+/g, " ").trim();
  const root = document.documentElement;
  const name = (element) => {
    const classes = [...element.classList].map((one) => `.${one}`).join("");
    return `${element.localName}${element.id && `#${element.id}`}${classes} "${clean(element.textContent).slice(0, 40)}"`;
  };

  // An element that scrolls its contents keeps them from widening the page.
  const scrolls = (element) => {
    for (let outer = element.parentElement; outer && outer !== document.body; outer = outer.parentElement) {
      if (getComputedStyle(outer).overflowX !== "visible") return true;
    }
    return false;
  };
  const overflow = () => {
    if (root.scrollWidth <= root.clientWidth) return [];
    const wide = [...document.querySelectorAll("body *")]
      .filter((element) => element.getBoundingClientRect().right > root.clientWidth + 0.5 && !scrolls(element))
      .map((element) => `${name(element)} ends at ${element.getBoundingClientRect().right} px`);
    return wide.length ? wide.slice(-3) : [`the page is ${root.scrollWidth} px wide`];
  };

  // Colours as the browser paints them, one over the other, on one pixel.
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const painted = new Map();
  const paint = (colours) => {
    const key = colours.join();
    if (!painted.has(key)) {
      canvas.fillStyle = "white";
      canvas.fillRect(0, 0, 1, 1);
      for (const colour of colours) {
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
      }
      painted.set(key, [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3));
    }
    return painted.get(key);
  };
  // Relative luminance and contrast as WCAG 2 defines them.
  const luminance = (rgb) => {
    const [red, green, blue] = rgb.map((byte) => {
      const part = byte / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = () => {
    const faults = [];
    for (const element of document.querySelectorAll("body *")) {
      const hasText = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && clean(node.data));
      if (!hasText || !element.checkVisibility() || element.closest("svg")) continue;
      const backgrounds = [];
      for (let outer = element; outer; outer = outer.parentElement) {
        backgrounds.unshift(getComputedStyle(outer).backgroundColor);
      }
      const style = getComputedStyle(element);
      const [one, other] = [luminance(paint(backgrounds)), luminance(paint([...backgrounds, style.color]))];
      const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
      const size = parseFloat(style.fontSize);
      const isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
      if (ratio < (isLarge ? 3 : 4.5)) faults.push(`${name(element)} has a contrast of ${ratio.toFixed(2)}`);
    }
    return faults.slice(0, 3);
  };

  // All forms in which a cell shows values: its text, titles and times.
  const shown = (cell) => {
    const inner = [...cell.querySelectorAll("[title], [datetime]")];
    const attributes = inner.flatMap((element) => [element.getAttribute("title"), element.getAttribute("datetime")]);
    const texts = [cell, ...cell.querySelectorAll("*")].map((element) => element.textContent);
    return [...texts, ...attributes].filter((text) => text !== null).map(clean);
  };
  const tables = [...document.querySelectorAll("main table")].map((table) => ({
    label: table.getAttribute("aria-label"),
    columns: [...table.tHead.rows[0].cells].map((cell) => clean(cell.textContent)),
    rows: [...table.tBodies[0].rows].map((row) => [...row.cells].map(shown)),
  }));
  const facts = {};
  for (const item of document.querySelectorAll("main section > dl.facts > div")) {
    facts[clean(item.querySelector("dt").textContent)] ??= shown(item.querySelector("dd"));
  }
  for (const figure of document.querySelectorAll("main .figure")) {
    facts[clean(figure.querySelector(".name").textContent)] ??= shown(figure.querySelector("strong"));
  }

  const main = document.querySelector("main").cloneNode(true);
  for (const time of main.querySelectorAll("time")) time.remove();
  const internal = [...document.links].filter((link) => link.origin === location.origin);
  return {
    title: document.title,
    overflow: overflow(),
    contrast: contrast(),
    links: [...new Set(internal.map((link) => link.pathname + link.search))],
    requests: [...document.querySelectorAll("footer .requests a")].map((link) => link.pathname + link.search),
    tables,
    facts,
    totals: [...document.querySelectorAll(".pager .total")].map((total) => clean(total.textContent)),
    text: clean(main.textContent),
    background: getComputedStyle(document.body).backgroundColor,
  };
})()
