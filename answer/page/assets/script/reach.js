function reachView([from, to], query) {
  const matrix = theCase.matrix;
  if (!matrix) return [element("h2", {}, "Who reaches whom"), absentOf("Who reaches whom")];
  const group = (list, name) => list.findIndex((one) => one.name === name);
  const holding = (list, name) => list.findIndex((one) => one.name === name || one.members.includes(name));
  const row = from ? group(matrix.from, from) : query.from ? holding(matrix.from, query.from) : -1;
  const column = to ? group(matrix.to, to) : query.to ? holding(matrix.to, query.to) : -1;
  return [element("h2", {}, "Who reaches whom"), askForm(matrix, query.from || from, query.to || to), answers(matrix, row, column, query),
    element("p", { class: "note" }, count(matrix.questions, "question") + ", ports " + matrix.ports.join(", ") + ". Endpoints that behave alike are a group."),
    (matrix.remarks || []).map((text) => element("p", { class: "note" }, linked(text))), theMatrix(matrix, row, column)];
}

// askForm lets a user choose two endpoints.
function askForm(matrix, from, to) {
  const names = (list) => [...new Set(list.flatMap((group) => [group.name, ...group.members]))];
  const field = (id, list, value, text) => [element("label", { for: id }, text), element("input", { id, list: id + "-names", value: value || "" }), element("datalist", { id: id + "-names" }, names(list).slice(0, 5000).map((name) => element("option", { value: name })))];
  return element("form", { class: "tools", onsubmit: (event) => {
    event.preventDefault();
    location.hash = withQuery(route("reach"), { from: document.getElementById("from").value, to: document.getElementById("to").value });
  } }, field("from", matrix.from, from, "from"), field("to", matrix.to, to, "to"), element("button", { type: "submit" }, "show"));
}

// answers lists what was asked about the pairs of a row and a column, or about all of one of them.
function answers(matrix, row, column, query) {
  if (query.from && row < 0 || query.to && column < 0) return element("p", { class: "bad" }, "Nothing in the matrix is called ", label(row < 0 && query.from ? query.from : query.to), ".");
  if (row < 0 && column < 0) return null;
  const cells = matrix.cells.filter((cell) => (row < 0 || cell.from === matrix.from[row].name) && (column < 0 || cell.to === matrix.to[column].name));
  const lines = cells.flatMap((cell) => cell.asked.map((asked) => [cell, asked]));
  if (lines.length === 0) return element("p", {}, "Nothing was asked about this pair: both are one endpoint, or they have no network in common.");
  const [shown, more] = listOf(lines, ([group, asked]) => element("tr", {}, cell(linked(asked.from)), cell(linked(asked.to)), cell(group.port), cell(element("strong", { class: verdictClass(asked.verdict) }, asked.verdict)), cell(asked.reason || ""), element("td", {}, linked(asked.rule || ""))), "tbody", 100);
  return [element("div", { class: "scroll" }, element("table", { class: "wide answers" }, headRow(["from", "to", "port", "verdict", "reason", "rule"]), shown)), more];
}

function verdictClass(verdict) {
  return { REACHABLE: "good", UNREACHABLE: "bad", "ONE-WAY": "bad" }[verdict] || "unsure";
}
