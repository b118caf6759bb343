// Pictures of networks: boxes with rows for their ports, laid out by dagre.

const rowHeight = 20;
const boxPadding = 10;
const mostRows = 24; // of a box; the others are one row that opens them
const crowd = 30; // boxes in a picture in which a box has only fewerRows
const fewerRows = 8;
const pen = document.createElement("canvas").getContext("2d");

function widthOf(text, bold) {
  pen.font = (bold ? "bold " : "") + "12px 'DejaVu Sans Mono', Menlo, Consolas, monospace";
  return pen.measureText(text).width;
}

function isDown(state) {
  return state === "down" || state === "error";
}

// rowsOf returns the ports of a box that have a row: those with edges and those that were not up first.
function rowsOf(box, joined, most) {
  const ports = (box.ports || []).map((port, index) => ({ port, index }));
  if (ports.length <= most) return ports;
  const important = (row) => joined.has(row.index) || isDown(row.port.state) || row.port.kind === "internal";
  const first = ports.filter(important);
  const others = ports.filter((row) => !important(row));
  const kept = first.concat(others).slice(0, most);
  return kept.concat([{ more: ports.length - kept.length }]);
}

function portText(port) {
  const name = (port.number ? port.number + " " : "") + shorten(port.name, 36);
  const note = [shorten(port.note || "", 48), isDown(port.state) ? port.state : ""].filter(Boolean).join(" ");
  return { name, note };
}

// measured returns a box with its rows and its size.
function measured(box, joined, most) {
  const title = shorten([box.node, box.name].filter(Boolean).join(" "), 60);
  const note = shorten(box.note || "", 70);
  const rows = rowsOf(box, joined, most).map((row) => (row.more ? { ...row, name: "and " + row.more + " more", note: "" } : { ...row, ...portText(row.port) }));
  const name = Math.max(0, ...rows.map((row) => widthOf(row.name)));
  const wide = Math.max(widthOf(title, true) + (note ? 12 + widthOf(note) : 0), ...rows.map((row) => name + (row.note ? 12 + widthOf(row.note) : 0) + 14));
  return { box, title, note, rows, nameWidth: name, width: Math.ceil(wide + 2 * boxPadding), height: 30 + rows.length * (rowHeight + 2) + (rows.length ? 8 : 0) };
}

function drawnBox(box, addressOf, open) {
  const [x, y] = [box.x - box.width / 2, box.y - box.height / 2];
  const label = (text, dx, dy, kind) => shape("text", { x: x + dx, y: y + dy, class: kind }, text);
  const rows = box.rows.map((row, index) => {
    const top = 30 + index * (rowHeight + 2);
    if (row.more) {
      const more = shape("g", { class: "row more", tabindex: 0, role: "button" }, shape("title", {}, "show all ports"), shape("rect", { x: x + 6, y: y + top, width: box.width - 12, height: rowHeight, rx: 3 }), label(row.name, boxPadding, top + 14, "name"));
      const act = (event) => {
        if (event.type === "keydown" && event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        open(box.box);
      };
      more.addEventListener("click", act);
      more.addEventListener("keydown", act);
      return more;
    }
    const kind = ["row", row.port.kind, row.port.state, row.port.active ? "active" : ""].filter(Boolean).join(" ");
    const body = [shape("title", {}, [[row.port.number, row.port.name].filter(Boolean).join(" "), row.port.note, ...(row.port.detail || [])].filter(Boolean).join("\n")), shape("rect", { x: x + 6, y: y + top, width: box.width - 12, height: rowHeight, rx: 3 }),
      shape("rect", { class: "strip", x: x + 6, y: y + top, width: 5, height: rowHeight }), label(row.name, boxPadding + 6, top + 14, ""), label(row.note, boxPadding + 18 + box.nameWidth, top + 14, isDown(row.port.state) ? "bad" : "note")];
    const address = addressOf.port(box.box, row.port);
    return shape("g", { class: kind }, address ? shape("a", { href: address }, body) : body);
  });
  const head = [shape("title", {}, [box.box.kind + " " + box.title, box.box.note, ...(box.box.detail || [])].filter(Boolean).join("\n")), shape("rect", { class: "frame", x, y, width: box.width, height: box.height, rx: 6 }),
    label(box.title, boxPadding, 20, "title"), label(box.note, boxPadding + 12 + widthOf(box.title, true), 20, "note")];
  const address = addressOf.box(box.box);
  return shape("g", { class: "box " + box.box.kind, "data-name": box.box.name }, address ? shape("a", { href: address }, head) : head, rows);
}

// picture returns a network as a picture that can be moved, zoomed and searched. addressOf gives the places that
// boxes and ports lead to.
function picture(graph, addressOf, options = {}) {
  if (graph.boxes.length === 0) return element("p", {}, "There is nothing to draw.");
  const opened = new Set();
  const canvas = shape("g", {});
  const svg = shape("svg", { class: "network", role: "group", "aria-label": graph.title, tabindex: 0 }, canvas);
  let size = { width: 100, height: 100 };
  const view = viewOf(svg, () => size);
  function draw() {
    const laid = (options.layout || arranged)(graph, opened);
    size = laid.size;
    canvas.replaceChildren(
      ...[...laid.ways].map(([edge, way]) => shape("path", { class: ["edge", edge.kind, edge.state].filter(Boolean).join(" "), d: way })),
      ...laid.boxes.map((box) => drawnBox(box, addressOf, (all) => { opened.add(all); draw(); })));
    view.begin();
  }
  draw();
  requestAnimationFrame(view.begin); // the picture has its width once it is in the page
  const find = element("input", { type: "search", placeholder: "find in the picture", "aria-label": "find in the picture", oninput: () => mark(canvas, find.value, view) });
  const chosen = options.chosen && canvas.querySelectorAll(".box")[graph.boxes.indexOf(options.chosen)];
  if (chosen) {
    chosen.classList.add("found");
    requestAnimationFrame(() => view.showBeyond(chosen.getBBox()));
  }
  const button = (text, what, act) => element("button", { type: "button", title: what, "aria-label": what, onclick: act }, text);
  return element("figure", { class: "picture" },
    element("div", { class: "tools" }, find, button("+", "larger", () => view.zoom(1.25)), button("\u2212", "smaller", () => view.zoom(0.8)), button("fit", "show all", view.fit), element("span", { class: "note screen" }, "drag it, or arrow keys, + and \u2212"), legend(graph)),
    svg, (graph.remarks || []).map((text) => element("p", { class: "note" }, linked(text))));
}

function legend(graph) {
  const kinds = new Set();
  for (const { port } of portsOf(graph)) kinds.add(port.kind);
  return element("span", { class: "legend" }, [...kinds].map((kind) => element("span", { class: "key " + kind }, kind)), element("span", { class: "key down" }, "not up"));
}

// mark shows what has a text in its name, note or details, and moves the picture to the first.
function mark(canvas, text, view) {
  let first = null;
  const wanted = text.toLowerCase();
  for (const part of canvas.querySelectorAll(".box, .row")) {
    const own = part.querySelector("title");
    const found = wanted !== "" && own && own.textContent.toLowerCase().includes(wanted);
    part.classList.toggle("found", found);
    if (found && !first) first = part;
  }
  if (first) view.show(first.getBBox());
}

// viewOf lets a picture be moved and zoomed, by mouse and keys.
function viewOf(svg, size) {
  let box = { x: 0, y: 0, width: 100, height: 100 };
  const apply = () => svg.setAttribute("viewBox", [box.x, box.y, box.width, box.height].join(" "));
  const center = () => [box.x + box.width / 2, box.y + box.height / 2];
  function zoom(by, [x, y] = center()) {
    box = { x: x - (x - box.x) / by, y: y - (y - box.y) / by, width: box.width / by, height: box.height / by };
    apply();
  }
  function begin() { // all of the picture, or the upper part of a high one, so that it can be read
    const all = size();
    const scale = Math.min(1, (svg.clientWidth || 900) / all.width);
    const height = Math.min(Math.max(120, all.height * scale), 2.5 * window.innerHeight);
    svg.style.height = height + "px";
    svg.style.maxWidth = Math.max(320, all.width) + "px";
    box = { x: 0, y: 0, width: all.width, height: height / scale };
    apply();
  }
  function fit() {
    box = { x: 0, y: 0, ...size() };
    apply();
  }
  svg.addEventListener("print", fit);
  const move = (dx, dy) => { box.x += dx * box.width; box.y += dy * box.height; apply(); };
  svg.addEventListener("keydown", (event) => {
    const acts = { ArrowLeft: () => move(-0.1, 0), ArrowRight: () => move(0.1, 0), ArrowUp: () => move(0, -0.1), ArrowDown: () => move(0, 0.1), "+": () => zoom(1.25), "-": () => zoom(0.8), 0: fit };
    if (event.target === svg && acts[event.key]) { acts[event.key](); event.preventDefault(); }
  });
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    zoom(event.deltaY < 0 ? 1.15 : 0.87, [point.x, point.y]);
  }, { passive: false });
  svg.addEventListener("pointerdown", (down) => {
    const from = { ...box };
    const scale = box.width / svg.clientWidth;
    const drag = (event) => { box.x = from.x - (event.clientX - down.clientX) * scale; box.y = from.y - (event.clientY - down.clientY) * scale; apply(); };
    svg.addEventListener("pointermove", drag);
    window.addEventListener("pointerup", () => svg.removeEventListener("pointermove", drag), { once: true });
  });
  function show(at) { // in the middle, in a picture that is no higher than a window
    const height = Math.min(svg.clientHeight, 0.75 * window.innerHeight);
    svg.style.height = height + "px";
    box = { x: at.x + at.width / 2 - svg.clientWidth / 2, y: at.y + at.height / 2 - height / 2, width: svg.clientWidth, height };
    apply();
  }
  const showBeyond = (at) => { if (at.y + at.height > box.height) show(at); };
  return { zoom, fit, begin, show, showBeyond };
}
