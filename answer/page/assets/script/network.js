// Pictures of more boxes than this show the surroundings of one of them.
const mostBoxes = 120;

const placesOfNetwork = {
  box: (box) => route("network", box.name),
  port: (box, port) => {
    for (const name of [port.name, ...(port.aliases || [])]) {
      if (targets.words.has(name) && targets.words.get(name).startsWith("#/ports/")) return targets.words.get(name);
    }
    return route("network", box.name);
  },
};

function networkView([name]) {
  const graph = theCase.logical;
  if (!graph) return [element("h2", {}, "Logical network"), element("p", {}, "No northbound database of OVN was collected.")];
  const chosen = graph.boxes.findIndex((box) => box.name === name);
  const large = graph.boxes.length > mostBoxes;
  const shown = large ? surroundings(graph, chosen >= 0 ? chosen : mostJoined(graph)) : graph;
  return [element("h2", {}, chosen >= 0 ? label(graph.boxes[chosen].kind + " " + name) : "Logical network"), element("p", { class: "note" }, graph.title, large ? "; shown is what is near " + shown.center + ": choose another switch or router below" : ""),
    picture(shown, placesOfNetwork, { find: chosen >= 0 && !large ? name : "" }), large ? boxList(graph) : null, chosen >= 0 ? boxView(graph, chosen) : null];
}

function boxView(graph, index) {
  const box = graph.boxes[index];
  return [facts([["note", linked(box.note || "")], ["more", (box.detail || []).map((text) => element("div", {}, linked(text)))]]), element("h3", {}, count((box.ports || []).length, "port")),
    ...listOf(box.ports || [], (port) => element("li", { class: "line" }, link(placesOfNetwork.port(box, port), port.name), element("span", { class: "note" }, " " + [port.kind, port.note, port.state].filter(Boolean).join(", "))), "ul", 60), findingsNaming([box.name])];
}

function boxList(graph) {
  return [element("h3", {}, "Switches and routers"), ...listOf(graph.boxes, (box) => element("li", { class: "line" }, link(route("network", box.name), box.kind + " " + box.name), element("span", { class: "note" }, " " + (box.note || ""))), "ul")];
}

function degrees(graph) {
  const degree = graph.boxes.map(() => 0);
  for (const edge of graph.edges) {
    degree[edge.from.box]++;
    degree[edge.to.box]++;
  }
  return degree;
}

function mostJoined(graph) {
  const degree = degrees(graph);
  return degree.indexOf(Math.max(...degree));
}

// surroundings returns the part of a graph around a box: its neighbours, and theirs while there is room.
function surroundings(graph, center) {
  const near = new Set([center]);
  for (let round = 0; round < 2; round++) {
    for (const edge of graph.edges) {
      for (const [here, there] of [[edge.from.box, edge.to.box], [edge.to.box, edge.from.box]]) {
        if (near.has(here) && near.size < mostBoxes / 2) near.add(there);
      }
    }
  }
  const chosen = new Set([...near].map((index) => graph.boxes[index]));
  const part = partOf(graph, (box) => chosen.has(box));
  const kept = part.boxes.map((box) => chosen.has(box));
  const order = part.boxes.map((box, index) => index).filter((index) => kept[index]);
  const at = (end) => ({ box: order.indexOf(end.box), port: end.port });
  return { title: graph.title, center: graph.boxes[center].name, boxes: order.map((index) => part.boxes[index]), edges: part.edges.filter((edge) => kept[edge.from.box] && kept[edge.to.box]).map((edge) => ({ ...edge, from: at(edge.from), to: at(edge.to) })) };
}

// physicalView shows the nodes, their tunnels and the physical networks.
function physicalView() {
  if (!theCase.physical) return [element("h2", {}, "Nodes and tunnels"), element("p", {}, "No bridges were collected.")];
  const all = nodesGraph(theCase.physical);
  const graph = all.boxes.length > mostDrawn ? summedUp(all) : all;
  return [element("h2", {}, "Nodes and tunnels"), element("p", { class: "note" }, theCase.physical.title), picture(graph, { box: (box) => box.address, port: (box, port) => port.address }, graph.boxes.length > mostDrawn ? { layout: gridded } : {}),
    graph.broken.length ? [element("h3", {}, "Not up"), element("ul", {}, graph.broken.map((edge) => element("li", {}, linked(edge))))] : null];
}

// nodesGraph returns a graph with one box for each node, whose rows are its bridges.
function nodesGraph(physical) {
  const boxes = [], at = new Map(), broken = [], edges = new Map();
  const boxFor = (box) => {
    const key = box.kind === "bridge" ? nodeOf(box) : box.kind + " " + box.name;
    if (!at.has(key)) {
      at.set(key, boxes.length);
      boxes.push(box.kind === "bridge" ? { name: key, kind: "node", ports: [], address: route("nodes", key) } : { name: box.name, kind: box.kind, note: box.note, ports: [], address: targets.words.get(box.name) });
    }
    return at.get(key);
  };
  for (const box of physical.boxes) {
    const own = boxes[boxFor(box)];
    const down = (box.ports || []).filter((port) => isDown(port.state) && port.name !== box.name).length;
    if (box.kind === "bridge") own.ports.push({ name: box.name, kind: "bridge", note: count((box.ports || []).length, "port") + (down ? ", " + down + " not up" : ""), state: "", address: route("nodes", own.name, "flows") });
  }
  for (const edge of physical.edges) {
    const [from, to] = [boxFor(physical.boxes[edge.from.box]), boxFor(physical.boxes[edge.to.box])];
    if (from === to) continue;
    if (isDown(edge.state)) broken.push(edge.kind + " " + edge.state + " between " + boxes[from].name + " and " + boxes[to].name);
    const key = [Math.min(from, to), Math.max(from, to), edge.kind].join(" ");
    if (!edges.has(key) || isDown(edge.state)) edges.set(key, { from: { box: from, port: -1 }, to: { box: to, port: -1 }, kind: edge.kind, state: edge.state });
  }
  return { title: physical.title, boxes, edges: [...edges.values()], broken };
}

const mostDrawn = 24; // nodes between which tunnels are drawn

// summedUp returns a graph without edges, whose boxes say how many they have.
function summedUp(graph) {
  const ends = graph.boxes.map(() => ({ all: 0, down: [] }));
  for (const edge of graph.edges) {
    for (const [here, there] of [[edge.from.box, edge.to.box], [edge.to.box, edge.from.box]]) {
      ends[here].all++;
      if (isDown(edge.state)) ends[here].down.push(graph.boxes[there].name);
    }
  }
  graph.boxes.forEach((box, index) => {
    const { all, down } = ends[index];
    if (all > 0) box.ports.push({ name: count(all, "link"), kind: "tunnel", note: down.length ? count(down.length, "link") + " not up" : "", detail: down.map((name) => "not up: " + name), state: down.length ? "down" : "", address: box.address });
  });
  return { ...graph, edges: [], remarks: ["The links of so many nodes are counted, not drawn: the page of each node has its own."] };
}

// gridded puts many boxes into rows and columns.
function gridded(graph, opened) {
  const boxes = graph.boxes.map((box) => measured(box, new Set(), opened.has(box)));
  const columns = Math.ceil(Math.sqrt(boxes.length / 2.5));
  const width = Math.max(...boxes.map((box) => box.width)), height = Math.max(...boxes.map((box) => box.height));
  boxes.forEach((box, index) => Object.assign(box, { x: 16 + (index % columns) * (width + 30) + width / 2, y: 16 + Math.floor(index / columns) * (height + 30) + height / 2 }));
  const g = { graph: () => ({ width: columns * (width + 30) + 16, height: Math.ceil(boxes.length / columns) * (height + 30) + 16 }) };
  return { boxes, g };
}
