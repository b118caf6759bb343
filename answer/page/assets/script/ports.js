function portsView([name], query) {
  if (name) return portView(name);
  const list = element("div", {});
  const state = chosenFrom(query, "q", "kind");
  const kinds = [...new Set(theCase.endpoints.map((end) => end.kind))].sort();
  function draw() {
    const wanted = state.q.toLowerCase();
    const found = theCase.endpoints.filter((end) => (state.kind === "" || end.kind === state.kind) && describeEnd(end).toLowerCase().includes(wanted));
    const [rows, more] = listOf(found, endRow, "tbody");
    list.replaceChildren(element("p", { class: "note" }, count(found.length, "endpoint")), element("div", { class: "scroll" }, element("table", { class: "wide" }, headRow(["name", "kind", "addresses", "network", "node"]), rows)), more);
  }
  draw();
  return [element("h2", {}, "Pods, instances, services and routers"), absentOf("Endpoints"),
    filters([{ name: "q", label: "filter endpoints", placeholder: "name, address, node" }, { name: "kind", label: "kind", options: [["", "all kinds"], ...kinds.map((kind) => [kind, kind])] }], state, draw), list];
}

function endRow(end) {
  const network = end.network || end.switch;
  return element("tr", {}, cell(link(route("ports", end.name), end.name)), cell(element("span", { class: "note" }, end.kind)), element("td", { class: "sentence" }, (end.ips || []).join(" "), element("span", { class: "note" }, " " + (end.mac || ""))),
    cell(network && linked(network)), cell(end.node && link(route("nodes", end.node), end.node)));
}

function describeEnd(end) {
  return [end.kind, end.name, end.port, ...(end.ips || []), end.mac, end.network || end.switch, end.node && "on " + end.node].filter(Boolean).join(" ");
}

function portView(name) {
  const all = theCase.endpoints.filter((end) => end.name === name);
  if (all.length === 0) return missing("endpoint", name);
  const end = all[0];
  const found = interfaceOf(end.port);
  const names = [end.name, end.port, end.mac, ...(end.ips || [])].filter(Boolean);
  return [element("h2", {}, label(end.name)),
    all.map((one) => facts([["kind", one.kind], ["logical port", one.port !== one.name ? one.port : ""], ["addresses", (one.ips || []).join(", ")], ["MAC", one.mac],
      ["network", linked([one.network, one.switch].filter((text, index, list) => text && list.indexOf(text) === index).join(", "))], ["backends", linked((one.backends || []).join(", "))]])),
    element("h3", {}, "Its way"), wayOf(end, found), end.port ? flowsNaming(end, found) : null, matrixOf(end), tracesNaming(names), findingsNaming(names), entriesNaming(names)];
}

// wayOf shows the way from an endpoint over its interface, bridge and logical network to the routers beyond.
function wayOf(end, found) {
  const steps = [label(end.name)];
  if (found) steps.push(link(route("nodes", nodeOf(found.box), "ports", found.port.name), "interface " + found.port.name + (found.port.number ? " (port " + found.port.number + ")" : "")), link(route("nodes", nodeOf(found.box)), found.box.name + " on " + nodeOf(found.box)));
  else if (end.node) steps.push(link(route("nodes", end.node), end.node));
  const graph = theCase.logical;
  const at = graph ? networkOf(graph, end) : -1;
  if (at >= 0) {
    steps.push(link(networkRoute(graph.boxes[at]), graph.boxes[at].kind + " " + graph.boxes[at].name));
    const beyond = [...new Set(graph.edges.flatMap((edge) => (edge.from.box === at ? [edge.to.box] : edge.to.box === at ? [edge.from.box] : [])))];
    if (beyond.length) steps.push(beyond.slice(0, 12).map((index, number) => [number ? ", " : "", link(networkRoute(graph.boxes[index]), graph.boxes[index].kind + " " + graph.boxes[index].name)]));
  }
  return element("ol", { class: "way-steps" }, steps.map((step) => element("li", {}, step)));
}

// networkOf returns the index of the switch or router of an endpoint, that of its node's zone if there are several; -1 for
// none.
function networkOf(graph, end) {
  const isIt = (box) => box.name === end.switch || box.name === end.network || (box.aliases || []).includes(end.switch);
  const own = graph.boxes.findIndex((box) => isIt(box) && box.node === end.node);
  return own >= 0 ? own : graph.boxes.findIndex(isIt);
}

function flowsNaming(end, found) {
  const names = [end.port, end.name, found && found.port.name].filter(Boolean).join("\n");
  const nodes = end.node ? theCase.nodes.filter((node) => node.name === end.node) : theCase.nodes;
  return [element("h3", {}, "Its flows"), element("ul", {}, nodes.slice(0, 20).map((node) => element("li", {}, link(withQuery(route("nodes", node.name, "flows"), { port: names }), "flows on " + node.name + " that match it"))))];
}

function matrixOf(end) {
  if (!theCase.matrix) return null;
  const groups = [...theCase.matrix.from, ...theCase.matrix.to].filter((group) => group.members.includes(end.name) || group.name === end.name);
  const names = [...new Set(groups.map((group) => group.name))];
  return names.length ? [element("h3", {}, "Who reaches whom"), element("ul", {}, names.map((name) => element("li", {}, link(withQuery(route("reach"), { from: end.name }), "from " + end.name), ", ", link(withQuery(route("reach"), { to: end.name }), "to " + end.name), element("span", { class: "note" }, " as of the group " + name))))] : null;
}
