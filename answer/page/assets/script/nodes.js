// Sections of a node: each a part of its address, its heading, and what shows it.
const nodeSections = [
  ["", "bridges", bridgesView],
  ["flows", "flows", flowsView],
  ["datapath", "datapath", datapathView],
  ["fidelity", "fidelity", fidelityView],
  ["drift", "drift", driftOfNode],
];

async function nodeView([name, section = "", ...rest], query) {
  const node = theCase.nodes.find((known) => known.name === name);
  if (!node) return missing("node", name);
  if (section === "ports") return interfaceView(node, rest[0]);
  const [, , show] = nodeSections.find(([part]) => part === section) || nodeSections[0];
  return [element("h2", {}, "Node ", label(node.name)),
    facts([["versions", [node.ovs && "Open vSwitch " + node.ovs, node.ovn && "OVN " + node.ovn].filter(Boolean).join(", ")], ["recorded", node.recorded], ["fidelity", node.fidelity], ["drift", node.drifted && linked(node.drifted)]]),
    element("nav", { class: "sections" }, nodeSections.map(([part, text]) => element("a", { href: part ? route("nodes", name, part) : route("nodes", name), "aria-current": part === section ? "page" : null }, text))),
    await show(node, query), section === "" ? findingsAbout((finding) => (finding.nodes || []).includes(name) || theCase.nodes.length === 1) : null];
}

// placesOfBridges has the addresses that the boxes and ports of bridges lead to.
const placesOfBridges = {
  box: (box) => (box.kind === "bridge" ? route("nodes", nodeOf(box), "flows") : targets.words.get(box.name)),
  port: (box, port) => (box.kind === "bridge" ? route("nodes", nodeOf(box), "ports", port.name) : null),
};

// partOf returns the part of a graph with some boxes and what they are joined with. The latter have no ports if they have
// many.
function partOf(graph, isIn) {
  const kept = new Set([...graph.boxes.keys()].filter((index) => isIn(graph.boxes[index])));
  const edges = graph.edges.filter((edge) => kept.has(edge.from.box) || kept.has(edge.to.box));
  for (const edge of edges) kept.add(edge.from.box).add(edge.to.box);
  const part = partWith({ ...graph, edges }, (_, index) => kept.has(index));
  return { ...part, boxes: part.boxes.map((box) => (isIn(box) || (box.ports || []).length <= mostRows ? box : { ...box, ports: [] })) };
}

const mostEnds = 12; // other ends of tunnels that are drawn even if all are up

function bridgesView(node) {
  if (!theCase.physical) return element("p", {}, "No bridges were collected.");
  const isOwn = (box) => box.kind === "bridge" && nodeOf(box) === node.name;
  const graph = partOf(theCase.physical, isOwn);
  const isEnd = (box) => !isOwn(box) && box.kind !== "network";
  graph.boxes = graph.boxes.map((box) => (isEnd(box) ? { ...box, ports: [] } : box));
  if (graph.boxes.filter(isEnd).length <= mostEnds) return picture(graph, placesOfBridges);
  const broken = new Set(graph.edges.filter((edge) => isDown(edge.state)).flatMap((edge) => [edge.from.box, edge.to.box]));
  const fewer = partWith(graph, (box, index) => !isEnd(box) || broken.has(index));
  return picture({ ...fewer, remarks: ["The other ends of so many tunnels are drawn only where they are not up; the ports of the bridge lead to all."] }, placesOfBridges);
}

function interfaceView(node, name) {
  const found = [...portsOf(theCase.physical)].find(({ box, port }) => box.kind === "bridge" && nodeOf(box) === node.name && port.name === name);
  if (!found) return missing("port of " + node.name, name);
  const { box, port } = found;
  const end = theCase.endpoints.find((known) => known.port && (port.aliases || []).includes(known.port));
  const names = [port.name, end && end.port, end && end.name].filter(Boolean).join("\n");
  return [element("h2", {}, "Port ", label(port.name)),
    facts([["node", link(route("nodes", node.name), node.name)], ["bridge", box.name], ["number", port.number], ["state", port.state || "not recorded"], ["kind", port.kind], ["note", port.note],
      ["endpoint", end && link(route("ports", end.name), end.name)], ["more", (port.detail || []).map((text) => element("div", {}, linked(text)))],
      ["joined with", joinedWith(found)], ["flows", link(withQuery(route("nodes", node.name, "flows"), { port: names }), "those that match the port")]]),
    findingsNaming([port.name, ...(port.aliases || [])])];
}

// joinedWith lists the other ends of the edges of a port.
function joinedWith({ index, box, port }) {
  const number = (box.ports || []).indexOf(port);
  const graph = theCase.physical;
  const ends = graph.edges.flatMap((edge) => [[edge.from, edge.to, edge], [edge.to, edge.from, edge]]).filter(([here]) => here.box === index && here.port === number && number >= 0);
  return ends.map(([, there, edge]) => {
    const other = graph.boxes[there.box];
    const end = (other.ports || [])[there.port];
    return element("div", {}, edge.kind + " ", edge.state ? edge.state + " " : "", "to ", end ? link(placesOfBridges.port(other, end) || "#", [other.node, other.name, end.name].filter(Boolean).join(" ")) : linked([other.node, other.name, other.note].filter(Boolean).join(" ")));
  });
}

function fidelityView(node) {
  const parts = [element("h3", {}, "Collected"), element("ul", {}, node.collected.map((text) => element("li", {}, text)))];
  if (node.lost) parts.push(element("h3", {}, "Could not be read"), element("ul", {}, node.lost.map((text) => element("li", {}, text))));
  if (node.synthesised) parts.push(element("p", {}, "The switch was " + node.synthesised + "."));
  if (!node.report) return parts.concat(element("p", {}, node.fidelity));
  const counts = node.report.bridges.flatMap((bridge) => Object.entries(bridge.counts).map(([dump, n]) => [bridge.name, dump, n.collected, n.restored, n.rewritten, n.placeholders, n.rejected, n.different]));
  const steps = node.report.steps.filter((step) => step.status !== "nothing to do" && step.status !== "restored");
  parts.push(element("h3", {}, "Restored"), element("p", {}, node.fidelity), table(["bridge", "entries", "collected", "restored", "rewritten", "placeholders", "rejected", "different"], counts));
  if (steps.length) parts.push(element("h3", {}, "Not as on the node"), element("dl", {}, steps.map((step) => [element("dt", {}, step.step + ": " + step.status), element("dd", {}, (step.details || []).map((text) => element("div", {}, linked(text))))])));
  for (const [key, title] of [["rejected", "Rejected entries"], ["placeholders", "Placeholders"]]) {
    if (node.report[key]) parts.push(element("h3", {}, title), ...listOf(node.report[key], (item) => element("li", {}, element("code", {}, [item.bridge, item.dump, item.line].filter(Boolean).join(" ") + ": " + (item.text || "")), " " + item.reason), "ul"));
  }
  if (node.report.remarks) parts.push(element("h3", {}, "Remarks"), element("ul", {}, node.report.remarks.map((text) => element("li", {}, text))));
  return parts;
}
