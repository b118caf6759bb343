// Pictures of more boxes than this show the surroundings of one of them.
const mostBoxes = 120;

// networkRoute returns the address of a switch or router: zones have some of the same name.
function networkRoute(box) {
  return box.node ? route("network", box.name, box.node) : route("network", box.name);
}

const placesOfNetwork = {
  box: networkRoute,
  port: (box, port) => {
    for (const name of [port.name, ...(port.aliases || [])]) {
      if (targets.words.has(name) && targets.words.get(name).startsWith("#/ports/")) return targets.words.get(name);
    }
    return networkRoute(box);
  },
};

function networkView([name, node]) {
  const graph = theCase.logical;
  if (!graph) return [element("h2", {}, "Logical network"), element("p", {}, "No northbound database of OVN was collected.")];
  const chosen = name === undefined ? -1 : graph.boxes.findIndex((box) => box.name === name && (node === undefined || box.node === node));
  if (name !== undefined && chosen < 0) return missing("switch or router", name);
  const large = graph.boxes.length > (chosen < 0 ? mostBoxes : crowd);
  const shown = apart(large ? surroundings(graph, chosen >= 0 ? chosen : mostJoined(graph)) : graph);
  return [element("h2", {}, chosen >= 0 ? label(titleOfBox(graph.boxes[chosen])) : "Logical network"), element("p", { class: "note" }, graph.title, large ? ["; shown is what is near ", label(shown.center), ": choose another switch or router below"] : ""),
    picture(shown, placesOfNetwork, { chosen: graph.boxes[chosen] }), chosen >= 0 ? boxView(graph, chosen) : null, large ? boxList(graph) : null];
}

function titleOfBox(box) {
  return box.kind + " " + box.name + (box.node ? " of " + box.node : "");
}

const mostShared = 6; // edges of a physical network that is drawn once
const mostJoinedOnce = 12; // edges of a switch or router that is drawn once in a crowd
const leavesOfCopy = 8; // boxes without other neighbours that share a copy

// apart returns a graph in which what joins many boxes is drawn beside each part that it joins: the picture would be one
// long column otherwise.
function apart(graph) {
  const degree = degrees(graph);
  const shared = (index) => degree[index] > (graph.boxes[index].kind === "network" ? mostShared : graph.boxes.length > crowd ? mostJoinedOnce : Infinity);
  if (!graph.boxes.some((_, index) => shared(index))) return graph;
  const part = new Map(); // by index of the box
  const rest = { boxes: graph.boxes, edges: graph.edges.filter((edge) => !shared(edge.from.box) && !shared(edge.to.box)) };
  partsOfGraph(rest).forEach((one, number) => one.boxes.forEach((index) => part.set(index, number)));
  const leaves = new Map(); // of what is shared: how many it has so far
  for (const edge of graph.edges) {
    for (const [hub, leaf] of [[edge.from.box, edge.to.box], [edge.to.box, edge.from.box]]) {
      if (!shared(hub) || shared(leaf) || degree[leaf] !== 1) continue;
      part.set(leaf, hub + "/" + Math.floor((leaves.get(hub) || 0) / leavesOfCopy));
      leaves.set(hub, (leaves.get(hub) || 0) + 1);
    }
  }
  const boxes = [...graph.boxes];
  const copies = new Map();
  const copyOf = (end, other) => {
    if (!shared(end.box)) return end;
    const key = end.box + " " + part.get(other.box);
    if (!copies.has(key)) copies.set(key, boxes.push(graph.boxes[end.box]) - 1);
    return { box: copies.get(key), port: end.port };
  };
  const edges = graph.edges.map((edge) => ({ ...edge, from: copyOf(edge.from, edge.to), to: copyOf(edge.to, edge.from) }));
  return { ...graph, ...partWith({ ...graph, boxes, edges }, (_, index) => index >= graph.boxes.length || !shared(index)), remarks: [...(graph.remarks || []), "What joins many others is drawn several times."] };
}

// partWith returns the boxes of a graph for which isIn holds, and the edges between them.
function partWith(graph, isIn) {
  const order = [...graph.boxes.keys()].filter((index) => isIn(graph.boxes[index], index));
  const number = new Map(order.map((index, at) => [index, at]));
  const edges = graph.edges.filter((edge) => number.has(edge.from.box) && number.has(edge.to.box));
  const at = (end) => ({ ...end, box: number.get(end.box) });
  return { title: graph.title, boxes: order.map((index) => graph.boxes[index]), edges: edges.map((edge) => ({ ...edge, from: at(edge.from), to: at(edge.to) })) };
}

function boxView(graph, index) {
  const box = graph.boxes[index];
  return [facts([["note", linked(box.note || "")], ["more", (box.detail || []).map((text) => element("div", {}, linked(text)))]]), element("h3", {}, count((box.ports || []).length, "port")),
    ...listOf(box.ports || [], (port) => element("li", { class: "line" }, link(placesOfNetwork.port(box, port), port.name), element("span", { class: "note" }, " " + [port.kind, port.note, port.state].filter(Boolean).join(", "))), "ul", 60), findingsNaming([box.name])];
}

// boxList lists all switches and routers, with a filter.
function boxList(graph) {
  const list = element("div", {});
  const state = { q: "" };
  const draw = () => {
    const found = graph.boxes.filter((box) => titleOfBox(box).toLowerCase().includes(state.q.toLowerCase()));
    list.replaceChildren(...listOf(found, (box) => element("li", { class: "line" }, link(networkRoute(box), titleOfBox(box)), element("span", { class: "note" }, " " + (box.note || ""))), "ul"));
  };
  draw();
  return [element("h3", {}, "Switches and routers"), filters([{ name: "q", label: "filter switches and routers", placeholder: "name" }], state, draw), list];
}

function degrees(graph) {
  const degree = graph.boxes.map(() => 0);
  for (const edge of graph.edges) {
    degree[edge.from.box]++;
    degree[edge.to.box]++;
  }
  return degree;
}

// mostJoined returns the index of the switch or router with the most edges.
function mostJoined(graph) {
  const degree = degrees(graph).map((edges, index) => (graph.boxes[index].kind === "network" ? 0 : edges));
  return degree.indexOf(Math.max(...degree));
}

const mostNear = 40; // boxes that surroundings adds, but for physical networks

// surroundings returns the part of a graph around a box: its neighbours, and theirs while there is room. It does not
// go on through physical networks, which may join all.
function surroundings(graph, center) {
  const neighbours = graph.boxes.map(() => []);
  for (const edge of graph.edges) {
    neighbours[edge.from.box].push(edge.to.box);
    neighbours[edge.to.box].push(edge.from.box);
  }
  const near = new Set([center]);
  for (const index of near) { // it grows meanwhile
    if (graph.boxes[index].kind === "network" && index !== center) continue;
    for (const next of neighbours[index]) if (near.size < mostNear) near.add(next);
  }
  return { ...partWith(graph, (_, index) => near.has(index)), center: graph.boxes[center].name };
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
    if (all > 0) box.ports.push({ name: count(all, "link"), kind: "tunnel", note: down.length ? down.length + " of them" : "", detail: down.map((name) => "not up: " + name), state: down.length ? "down" : "", address: box.address });
  });
  return { ...graph, edges: [], remarks: ["The links of so many nodes are counted, not drawn: the page of each node has its own."] };
}
