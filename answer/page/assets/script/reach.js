const shownAs = (cell) => (cell.verdict === "REACHABLE" && cell.asked.some((asked) => asked.reply) ? "REPLY" : cell.verdict);

function reachView([from, to], query) {
  const matrix = theCase.matrix;
  if (!matrix) return [element("h2", {}, "Who reaches whom"), absentOf("Who reaches whom")];
  const group = (list, name) => list.findIndex((one) => one.name === name);
  const holding = (list, name) => list.findIndex((one) => one.name === name || one.members.includes(name));
  const row = from ? group(matrix.from, from) : query.from ? holding(matrix.from, query.from) : -1;
  const column = to ? group(matrix.to, to) : query.to ? holding(matrix.to, query.to) : -1;
  return [element("h2", {}, "Who reaches whom"), askForm(matrix, query.from || from, query.to || to), answers(matrix, row, column, query),
    element("p", { class: "note" }, count(matrix.questions, "question") + ", ports " + matrix.ports.join(", ") + ". Endpoints that behave alike are a group."),
    (matrix.remarks || []).map((text) => element("p", { class: "note" }, linked(text))), heatMap(matrix, row, column)];
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

// moveInMatrix moves the focus from a cell of the matrix to the next one in the direction of an arrow key.
function moveInMatrix(event) {
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  const at = event.target.closest("td, th"), step = steps[event.key];
  if (!at || !step) return;
  event.preventDefault();
  let [row, column] = [at.parentElement.rowIndex, at.cellIndex];
  const rows = event.currentTarget.rows;
  for (let found = null; !found;) {
    [row, column] = [row + step[0], column + step[1]];
    if (!rows[row] || !rows[row].cells[column]) return;
    found = rows[row].cells[column].querySelector("a");
    if (found) found.focus();
  }
}

function verdictClass(verdict) {
  return { REACHABLE: "good", UNREACHABLE: "bad", "ONE-WAY": "bad" }[verdict] || "unsure";
}

function heatMap(matrix, row, column) {
  const at = new Map();
  for (const cell of matrix.cells) {
    const key = cell.from + "\n" + cell.to;
    if (!at.has(key)) at.set(key, []);
    at.get(key).push(cell);
  }
  const letters = new Map(theCase.legend.map((line) => [line.shown, line.letter]));
  const mapCell = (from, to, chosen) => {
    const cells = at.get(from.name + "\n" + to.name);
    if (!cells) return element("td", { class: "none" });
    const open = cells.filter((cell) => cell.verdict === "REACHABLE").length;
    const text = [...new Set(cells.map(shownAs).filter((shown) => shown !== "REACHABLE" && shown !== "UNREACHABLE").map((shown) => letters.get(shown)))].join("");
    const share = open === 0 ? 0 : open === cells.length ? 10 : Math.min(9, Math.max(1, Math.floor((10 * open) / cells.length)));
    return element("td", { class: "s" + share + (chosen ? " chosen" : ""), title: [from.name + " to " + to.name, ...cells.map((cell) => cell.port + " " + cell.verdict)].join("\n") }, element("a", { href: route("reach", from.name, to.name), tabindex: -1, "aria-label": from.name + " to " + to.name + ": " + open + " of " + cells.length + " ports reachable" }, text || "\u00a0"));
  };
  return [element("ul", { class: "legend" }, element("li", {}, element("span", { class: "square s0" }), "no port"), element("li", {}, element("span", { class: "square s5" }), "some ports"), element("li", {}, element("span", { class: "square s10" }), "all ports"),
    theCase.legend.filter((line) => matrix.shown[line.shown] && line.letter !== "-" && line.shown !== "REACHABLE").map((line) => element("li", {}, element("strong", {}, line.letter), " " + line.meaning + ": " + matrix.shown[line.shown]))),
  element("p", { class: "note screen" }, "In the matrix, arrow keys lead from cell to cell."), element("div", { class: "scroll around" }, element("table", { class: "matrix", onkeydown: moveInMatrix },
    element("thead", {}, element("tr", {}, element("th", { class: "corner" }, "from \\ to"), matrix.to.map((to) => element("th", { class: "to", title: to.name }, element("span", {}, shorten(to.name, 34)))))),
    element("tbody", {}, matrix.from.map((from, i) => element("tr", {}, element("th", { title: from.name }, link(withQuery(route("reach"), { from: from.name }), shorten(from.name, 34))), matrix.to.map((to, j) => mapCell(from, to, i === row && j === column)))))))];
}
