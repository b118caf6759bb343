// Pictures of networks: boxes with rows for their ports, laid out by dagre.

const rowHeight = 20;
const boxPadding = 10;
const mostRows = 24; // of a box; the others are one row that opens them
const pen = document.createElement("canvas").getContext("2d");

function widthOf(text, bold) {
  pen.font = (bold ? "bold " : "") + "12px 'DejaVu Sans Mono', Menlo, Consolas, monospace";
  return pen.measureText(text).width;
}

function isDown(state) {
  return state === "down" || state === "error";
}

// rowsOf returns the ports of a box that have a row: those with edges and those that were not up first.
function rowsOf(box, joined, all) {
  const ports = (box.ports || []).map((port, index) => ({ port, index }));
  if (all || ports.length <= mostRows) return ports;
  const important = (row) => joined.has(row.index) || isDown(row.port.state) || row.port.kind === "internal";
  const first = ports.filter(important);
  const others = ports.filter((row) => !important(row));
  const kept = first.concat(others).slice(0, mostRows);
  return kept.concat([{ more: ports.length - kept.length }]);
}

function portText(port) {
  const name = (port.number ? port.number + " " : "") + shorten(port.name, 36);
  const note = [shorten(port.note || "", 48), isDown(port.state) ? port.state : ""].filter(Boolean).join(" ");
  return { name, note };
}

// measured returns a box with its rows and its size.
function measured(box, joined, all) {
  const title = shorten([box.node, box.name].filter(Boolean).join(" "), 60);
  const note = shorten(box.note || "", 70);
  const rows = rowsOf(box, joined, all).map((row) => (row.more ? { ...row, name: "and " + row.more + " more", note: "" } : { ...row, ...portText(row.port) }));
  const name = Math.max(0, ...rows.map((row) => widthOf(row.name)));
  const wide = Math.max(widthOf(title, true) + (note ? 12 + widthOf(note) : 0), ...rows.map((row) => name + (row.note ? 12 + widthOf(row.note) : 0) + 14));
  return { box, title, note, rows, nameWidth: name, width: Math.ceil(wide + 2 * boxPadding), height: 30 + rows.length * (rowHeight + 2) + (rows.length ? 8 : 0) };
}

// arranged lays out boxes, and returns their positions and the way of each edge.
function arranged(graph, opened, direction) {
  const joined = graph.boxes.map(() => new Set());
  for (const edge of graph.edges) {
    joined[edge.from.box].add(edge.from.port);
    joined[edge.to.box].add(edge.to.port);
  }
  const boxes = graph.boxes.map((box, index) => measured(box, joined[index], opened.has(box)));
  const g = new dagre.graphlib.Graph({ multigraph: true });
  g.setGraph({ rankdir: direction || "LR", nodesep: 26, ranksep: 70, edgesep: 12, marginx: 16, marginy: 16 });
  g.setDefaultEdgeLabel(() => ({}));
  boxes.forEach((box, index) => g.setNode(String(index), box));
  graph.edges.forEach((edge, index) => {
    if (edge.from.box !== edge.to.box) g.setEdge(String(edge.from.box), String(edge.to.box), {}, String(index));
  });
  dagre.layout(g);
  return { boxes, g };
}

// rowMiddle returns the height of the row of a port in a box, or the middle of the head.
function rowMiddle(box, port) {
  const at = box.rows.findIndex((row) => row.index === port);
  return box.y - box.height / 2 + (at < 0 ? 16 : 30 + at * (rowHeight + 2) + rowHeight / 2);
}

// columnsOf returns from where to where each column of boxes is, from left to right: dagre puts the middles of its boxes
// above each other.
function columnsOf(boxes) {
  const columns = new Map();
  for (const box of boxes) {
    const column = columns.get(box.x) || { middle: box.x, left: Infinity, right: -Infinity };
    columns.set(box.x, { middle: box.x, left: Math.min(column.left, box.x - box.width / 2), right: Math.max(column.right, box.x + box.width / 2) });
  }
  return [...columns.values()].sort((a, b) => a.middle - b.middle);
}

// edgePath returns the way of an edge. It is level within the columns, at heights that dagre keeps free of boxes, and
// bends between them only, so that it runs through no box.
function edgePath(edge, points, from, to, columns) {
  if (from.x === to.x) { // both ends are in one column
    const x = columns.find((column) => column.middle === from.x).right;
    const [y1, y2] = [rowMiddle(from, edge.from.port), rowMiddle(to, edge.to.port)];
    return `M ${from.x + from.width / 2} ${y1} H ${x} C ${x + 40} ${y1} ${x + 40} ${y2} ${x} ${y2} H ${to.x + to.width / 2}`;
  }
  if (from.x > to.x) return edgePath({ from: edge.to, to: edge.from }, points && [...points].reverse(), to, from, columns);
  let path = `M ${from.x + from.width / 2} ${rowMiddle(from, edge.from.port)}`;
  let [x, y] = [from.x, rowMiddle(from, edge.from.port)];
  for (const column of columns.filter((one) => one.middle > from.x && one.middle <= to.x)) {
    const before = columns.find((one) => one.middle === x).right;
    const height = column.middle === to.x ? rowMiddle(to, edge.to.port) : heightAt(points, column.middle, y);
    const bend = (column.left - before) / 2;
    path += ` H ${before} C ${before + bend} ${y} ${column.left - bend} ${height} ${column.left} ${height}`;
    [x, y] = [column.middle, height];
  }
  return path + ` H ${to.x - to.width / 2}`;
}

// heightAt returns the height of an edge in the middle of a column that it passes.
function heightAt(points, x, otherwise) {
  const at = (points || []).find((point) => Math.abs(point.x - x) < 1);
  return at ? at.y : otherwise;
}

function drawnBox(box, addressOf, open) {
  const [x, y] = [box.x - box.width / 2, box.y - box.height / 2];
  const label = (text, dx, dy, kind) => shape("text", { x: x + dx, y: y + dy, class: kind }, text);
  const rows = box.rows.map((row, index) => {
    const top = 30 + index * (rowHeight + 2);
    if (row.more) {
      const more = shape("g", { class: "row more", tabindex: 0, role: "button" }, shape("title", {}, "show all ports"), shape("rect", { x: x + 6, y: y + top, width: box.width - 12, height: rowHeight, rx: 3 }), label(row.name, boxPadding, top + 14, "name"));
      const act = (event) => { if (event.type === "click" || event.key === "Enter") open(box.box); };
      more.addEventListener("click", act);
      more.addEventListener("keydown", act);
      return more;
    }
    const kind = ["row", row.port.kind, row.port.state, row.port.active ? "active" : ""].filter(Boolean).join(" ");
    const body = [shape("title", {}, [row.port.name, row.port.note, ...(row.port.detail || [])].filter(Boolean).join("\n")), shape("rect", { x: x + 6, y: y + top, width: box.width - 12, height: rowHeight, rx: 3 }),
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
  const opened = new Set();
  const canvas = shape("g", {});
  const svg = shape("svg", { class: "network", role: "group", "aria-label": graph.title, tabindex: 0 }, canvas);
  let size = { width: 100, height: 100 };
  const view = viewOf(svg, () => size);
  function draw() {
    const { boxes, g } = options.layout ? options.layout(graph, opened) : arranged(graph, opened, options.direction);
    size = { width: g.graph().width, height: g.graph().height };
    const columns = columnsOf(boxes);
    canvas.replaceChildren(
      ...graph.edges.map((edge, index) => {
        const laid = g.edge({ v: String(edge.from.box), w: String(edge.to.box), name: String(index) });
        return shape("path", { class: ["edge", edge.kind, edge.state].filter(Boolean).join(" "), d: edgePath(edge, laid && laid.points, boxes[edge.from.box], boxes[edge.to.box], columns) });
      }),
      ...boxes.map((box) => drawnBox(box, addressOf, (all) => { opened.add(all); draw(); })));
    view.fit();
  }
  draw();
  requestAnimationFrame(view.fit); // the picture has its width once it is in the page
  const find = element("input", { type: "search", placeholder: "find in the picture", "aria-label": "find in the picture", oninput: () => mark(canvas, find.value, view) });
  if (options.find) { find.value = options.find; requestAnimationFrame(() => mark(canvas, options.find, view)); }
  const button = (text, what, act) => element("button", { type: "button", title: what, "aria-label": what, onclick: act }, text);
  return element("figure", { class: "picture" },
    element("div", { class: "tools" }, find, button("+", "larger", () => view.zoom(1.25)), button("\u2212", "smaller", () => view.zoom(0.8)), button("fit", "show all", view.fit), legend(graph)),
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
  function fit() {
    const all = size();
    box = { x: 0, y: 0, width: all.width, height: all.height };
    const width = svg.clientWidth || 900;
    const scale = Math.min(1, width / all.width);
    svg.style.height = Math.min(Math.max(120, all.height * scale), 1.5 * window.innerHeight) + "px";
    svg.style.maxWidth = Math.max(320, all.width) + "px";
    apply();
  }
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
  return { zoom, fit, show(at) { box = { x: at.x - 300, y: at.y - 160, width: Math.max(at.width, 200) + 600, height: Math.max(at.height, 80) + 320 }; apply(); } };
}
