// load returns the data of an element of the page.
async function load(id) {
  const text = atob(document.getElementById("data-" + id).textContent);
  const packed = Uint8Array.from(text, (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).json();
}

let theCase;

// readCase reads the case. A list that has nothing is null in some documents, and empty in theCase.
async function readCase() {
  theCase = await load("case");
  theCase.check.findings = theCase.check.findings || [];
  for (const graph of [theCase.physical, theCase.logical].filter(Boolean)) Object.assign(graph, { boxes: graph.boxes || [], edges: graph.edges || [] });
  const matrix = theCase.matrix;
  if (matrix) Object.assign(matrix, { from: matrix.from || [], to: matrix.to || [], ports: matrix.ports || [], shown: matrix.shown || {} });
}

const flowsOfNodes = new Map();

// flowsOf returns the flows of a node, which are read when they are looked at first.
function flowsOf(node) {
  if (!node.chunk) return Promise.resolve({ stages: [], flows: [], datapath: [] });
  if (!flowsOfNodes.has(node.name)) flowsOfNodes.set(node.name, load(node.chunk).then(named));
  return flowsOfNodes.get(node.name);
}

// named returns the flows of a node with the names of their parts.
function named(content) {
  content.flows = content.flows.map(([stage, priority, packets, bytes, datapath, inport, outport, match, rule, purpose, text]) =>
    ({ stage, priority, packets, bytes, datapath, inport, outport, match, rule, purpose, text }));
  return content;
}

// where returns the match of a flow with its datapath and logical ports in names.
function where(flow) {
  const ports = [flow.inport && "inport=" + flow.inport, flow.outport && "outport=" + flow.outport, flow.match].filter(Boolean).join(",");
  return [flow.datapath, ports].filter(Boolean).join(": ") || "any packet";
}

// portsOf yields each port of the bridges, with the box and the bond that it is in.
function* portsOf(graph) {
  for (const [index, box] of (graph ? graph.boxes : []).entries()) {
    for (const port of box.ports || []) {
      yield { index, box, port };
      for (const member of port.members || []) yield { index, box, port: member, bond: port };
    }
  }
}

// nodeOf returns the name of the node of a bridge: boxes of a case of one node do not name it.
function nodeOf(box) {
  return box.node || theCase.nodes[0].name;
}

// interfaceOf returns where the interface of a logical port is.
function interfaceOf(logical) {
  for (const found of portsOf(theCase.physical)) {
    if (logical && (found.port.aliases || []).includes(logical)) return found;
  }
  return null;
}
