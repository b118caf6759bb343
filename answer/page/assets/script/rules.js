function linkToRule(uuid) {
  const rule = theCase.rules.find((known) => known.uuid === uuid);
  return rule ? link(route("rules", rule.uuid), rule.name) : uuid;
}

function rulesView([uuid], query) {
  if (uuid) return ruleView(theCase.rules.find((rule) => rule.uuid === uuid), uuid);
  const list = element("div", {});
  const tables = [...new Set(theCase.rules.map((rule) => rule.table))].sort();
  const state = chosenFrom(query, "q", "table");
  function draw() {
    const wanted = state.q.toLowerCase();
    const found = theCase.rules.filter((rule) => (state.table === "" || rule.table === state.table) && (rule.name + " " + rule.uuid + " " + (rule.columns || []).map((column) => column.value).join(" ")).toLowerCase().includes(wanted))
      .sort((a, b) => b.packets - a.packets);
    const most = Math.max(0, ...found.map((rule) => rule.packets));
    list.replaceChildren(element("p", { class: "note" }, count(found.length, "rule")), ...listOf(found, (rule) => element("li", { class: "flow line" }, heat(rule.packets, most), element("span", { class: "what" }, ruleEntry(rule))), "ol"));
  }
  draw();
  return [element("h2", {}, "Rules"), element("p", { class: "note" }, "The rows of the databases that flows were made from, with the packets that their flows matched."),
    filters([{ name: "q", label: "filter rules", placeholder: "name, match, address" }, { name: "table", label: "table", options: [["", "all tables"], ...tables.map((name) => [name, name])] }], state, draw), list];
}

// ruleEntry returns a rule in a list, with where its flows are: zones have rules of the same name.
function ruleEntry(rule) {
  const nodes = Object.keys(rule.flows).map((index) => theCase.nodes[index].name);
  const where = theCase.nodes.length === 1 ? "" : " on " + (nodes.length > 3 ? count(nodes.length, "node") : nodes.join(", "));
  return [link(route("rules", rule.uuid), label(rule.name)), element("span", { class: "note" }, " " + rule.table + ", " + count(Object.values(rule.flows).reduce((a, b) => a + b, 0), "flow") + where)];
}

function ruleView(rule, uuid) {
  if (!rule) return missing("rule", uuid);
  const nodes = Object.entries(rule.flows).map(([index, number]) => [theCase.nodes[index], number]);
  return [element("h2", {}, label(rule.name)),
    facts([["table", rule.table], ["UUID", rule.uuid], ["packets", count(rule.packets, "packet") + " matched its flows"]]),
    element("h3", {}, "Its flows"), element("ul", {}, nodes.map(([node, number]) => element("li", {}, link(withQuery(route("nodes", node.name, "flows"), { rule: rule.uuid }), count(number, "flow") + " on " + node.name)))),
    nodes.length < theCase.nodes.length && theCase.nodes.length > 1 ? element("p", { class: "note" }, "No flows on " + theCase.nodes.filter((node, index) => !rule.flows[index]).map((node) => node.name).join(", ")) : null,
    element("h3", {}, "Its row"), facts((rule.columns || []).map((column) => [column.name, element("code", {}, linked(column.value))])),
    pairsOf(rule), entriesNaming([rule.uuid]), findingsNaming([rule.uuid, rule.name])];
}

// pairsOf lists the pairs of the matrix that a rule decides.
function pairsOf(rule) {
  const cells = (theCase.matrix ? theCase.matrix.cells : []).filter((cell) => cell.asked.some((asked) => (asked.rule || "").includes(rule.name)));
  if (cells.length === 0) return null;
  return [element("h3", {}, "Pairs that it decides"), ...listOf(cells, (cell) => element("li", {}, link(route("reach", cell.from, cell.to), cell.from + " to " + cell.to), " " + cell.port + " " + cell.verdict), "ul", 50)];
}
