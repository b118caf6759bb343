// heat returns a bar for a number of packets: its length is the logarithm of its share of the largest.
function heat(packets, most) {
  const bar = element("span", { class: "heat", "aria-hidden": "true" });
  bar.style.width = (most > 0 && packets > 0 ? (100 * Math.log2(1 + packets)) / Math.log2(1 + most) : 0) + "%";
  return element("span", { class: "heatbox" }, bar, element("span", { class: "number" }, packets === null ? "not counted" : packets.toLocaleString("en")));
}

// matchesFlow reports whether a flow is one that a query asks for.
function matchesFlow(flow, query) {
  if (query.rule && (flow.rule < 0 || theCase.rules[flow.rule].uuid !== query.rule)) return false;
  if (query.hit === "hit" && !flow.packets || query.hit === "never" && flow.packets !== 0) return false;
  if (query.port) {
    const names = query.port.split("\n");
    if (!names.some((name) => [flow.inport, flow.outport].some((port) => mentions(port, name)) || flow.match.split(",").includes("in_port=" + name))) return false;
  }
  const text = (query.q || "").toLowerCase();
  return text === "" || (where(flow) + " " + flow.purpose + " " + flow.text).toLowerCase().includes(text);
}

function flowEntry(flow, most) {
  const rule = flow.rule >= 0 ? theCase.rules[flow.rule] : null;
  return element("li", { class: "flow" }, element("details", {},
    element("summary", {}, heat(flow.packets, most), element("span", { class: "priority" }, flow.priority), element("span", { class: "what" }, element("code", {}, where(flow)), flow.purpose ? element("span", { class: "purpose" }, " " + flow.purpose) : null)),
    facts([["flow", element("code", {}, flow.text)], ["packets", flow.packets === null ? "not counted" : count(flow.packets, "packet") + ", " + count(flow.bytes || 0, "byte")],
      ["rule", rule && link(route("rules", rule.uuid), rule.name)], ["for", !rule && flow.purpose ? linked(flow.purpose) : null],
      ["inport", flow.inport && linked(flow.inport)], ["outport", flow.outport && linked(flow.outport)], ["datapath", flow.datapath && linked(flow.datapath)]])));
}

// flowsView shows the flows of a node by stages.
async function flowsView(node, query) {
  const content = await flowsOf(node);
  const list = element("div", {});
  const state = chosenFrom(query, "q", "hit", "stage");
  function draw() {
    const chosen = { ...query, ...state };
    const byStage = content.stages.map(() => []);
    let most = 0, found = 0;
    for (const flow of content.flows) {
      if (state.stage !== "" && flow.stage !== Number(state.stage) || !matchesFlow(flow, chosen)) continue;
      byStage[flow.stage].push(flow);
      most = Math.max(most, flow.packets || 0);
      found++;
    }
    const filtered = found < content.flows.length;
    const packets = Math.max(0, ...content.stages.map((stage) => stage.packets));
    list.replaceChildren(element("p", { class: "note" }, count(found, "flow") + (filtered ? " of " + content.flows.length.toLocaleString("en") : "") + (node.flows > node.shown ? "; " + count(node.flows - node.shown, "flow") + " that matched the fewest packets are not in the page" : "")),
      ...content.stages.map((stage, index) => stageOf(stage, byStage[index], { filtered, most, packets, open: filtered && found <= 60 })).filter(Boolean));
  }
  draw();
  const stages = content.stages.map((stage, index) => [index, [stage.bridge, stage.table, stage.name].filter((part) => part !== "").join(" ")]);
  return [chosenBy(query), filters([
    { name: "q", label: "filter flows", placeholder: "match, port, policy, action" },
    { name: "stage", label: "stage", options: [["", "all tables"], ...stages] },
    { name: "hit", label: "packets", options: [["", "hit or not"], ["hit", "matched packets"], ["never", "matched none"]] },
  ], state, draw), list];
}

// chosenBy says which flows a link led to.
function chosenBy(query) {
  if (query.rule) return element("p", {}, "Flows of ", linkToRule(query.rule));
  if (query.port) return element("p", {}, "Flows that match ", linked(query.port.split("\n")[0]));
  return null;
}

function stageOf(stage, flows, { filtered, most, packets, open }) {
  if (filtered && flows.length === 0) return null;
  const head = element("summary", {}, heat(stage.packets, packets), element("span", { class: "priority" }, stage.table), element("span", { class: "what" }, element("strong", {}, stage.name || "table " + stage.table), " ", element("span", { class: "note" }, stage.bridge + ", " + (filtered ? flows.length.toLocaleString("en") + " of " : "") + count(stage.flows, "flow") + (stage.never_hit ? ", " + stage.never_hit.toLocaleString("en") + " never hit" : ""))));
  return unfolding({ class: "stage", open }, head, () => listOf(flows, (flow) => flowEntry(flow, most), "ol"));
}

// datapathView shows the flows of the datapath as a tree by recirculations.
async function datapathView(node) {
  const { datapath } = await flowsOf(node);
  if (datapath.length === 0) return element("p", {}, "No flows of the datapath were recorded of ", label(node.name), ".");
  const tree = { resumed: new Map(), most: 1, open: datapath.length < 40 };
  const reached = new Set();
  for (const flow of datapath) {
    if (!tree.resumed.has(flow.recirc)) tree.resumed.set(flow.recirc, []);
    tree.resumed.get(flow.recirc).push(flow);
    tree.most = Math.max(tree.most, flow.packets);
    for (const id of flow.next || []) reached.add(id);
  }
  const roots = (tree.resumed.get(0) || []).concat(datapath.filter((flow) => flow.recirc !== 0 && !reached.has(flow.recirc)));
  return [element("p", { class: "note" }, count(node.datapath, "flow") + " of the datapath" + (node.datapath > node.datapath_shown ? ", of which the page has the " + count(node.datapath_shown, "flow") + " with the most packets" : "") + "; a flow that sends packets through recirculation has those that resume it below it."),
    ...listOf(roots, (flow) => datapathEntry(flow, tree, []), "ol")];
}

// datapathEntry returns a flow of the datapath. What is below it is made when it is opened: many flows may be resumed by
// many. above are the recirculations on the way to it.
function datapathEntry(flow, tree, above) {
  const head = element("span", { class: "what" }, flow.recirc ? element("span", { class: "note" }, "recirculation " + flow.recirc + " ") : null, element("strong", {}, "from ", linked(flow.from)), " ", element("code", {}, flow.match));
  return element("li", { class: "flow" }, unfolding({ open: tree.open }, element("summary", {}, heat(flow.packets, tree.most), element("span", {}), head), () => [
    facts([["actions", element("code", {}, flow.actions)], ["packets", count(flow.packets, "packet") + ", " + count(flow.bytes, "byte") + ", used " + (flow.used || "never")]]),
    (flow.next || []).filter((id) => !above.includes(id)).map((id) => (tree.resumed.has(id)
      ? listOf(tree.resumed.get(id), (next) => datapathEntry(next, tree, [...above, id]), "ol", 50)
      : element("p", { class: "note" }, "No recorded flow resumes recirculation " + id + ".")))]));
}
