// The picture of the matrix: a cell for each pair of groups, whose colour says how many ports are reachable, or that this is not known.

const denseFrom = 40; // groups in a row from which cells are small

let drawnMatrix = null; // it is drawn once: a large one takes a second

// theMatrix returns the picture, in which one cell may be chosen.
function theMatrix(matrix, row, column) {
  drawnMatrix = drawnMatrix || heatMap(matrix);
  const cells = drawnMatrix.querySelector("table");
  for (const cell of cells.querySelectorAll("td.chosen")) cell.classList.remove("chosen");
  if (row >= 0 && column >= 0) cells.rows[row + 1].cells[column + 1].classList.add("chosen");
  return [matrixLegend(matrix), element("p", { class: "note screen" }, "In the matrix, arrow keys lead from cell to cell."), drawnMatrix];
}

function matrixLegend(matrix) {
  const shades = [["s0", "no port"], ["s5", "some ports"], ["s10", "all ports"], ["unknown", "not known"]].map(([shade, text]) => element("li", {}, element("span", { class: "square " + shade }), text));
  const letters = theCase.legend.filter((line) => matrix.shown[line.shown] && line.letter !== "-" && line.shown !== "REACHABLE");
  return element("ul", { class: "legend" }, shades, letters.map((line) => element("li", {}, element("strong", {}, line.letter), " " + line.meaning + ": " + matrix.shown[line.shown])));
}

function heatMap(matrix) {
  const asked = new Map();
  for (const cell of matrix.cells) {
    const key = cell.from + "\n" + cell.to;
    if (!asked.has(key)) asked.set(key, []);
    asked.get(key).push(cell);
  }
  const letters = new Map(theCase.legend.map((line) => [line.shown, line.letter]));
  const heads = matrix.to.map((to) => element("th", { class: "to", title: to.name }, element("span", {}, shorten(to.name, 34))));
  const rows = matrix.from.map((from) => element("tr", {}, element("th", { title: from.name }, link(withQuery(route("reach"), { from: from.name }), shorten(from.name, 34))),
    matrix.to.map((to) => matrixCell(from.name, to.name, asked.get(from.name + "\n" + to.name), letters))));
  return element("div", { class: "scroll around" }, element("table", { class: "matrix" + (matrix.to.length >= denseFrom ? " dense" : ""), onkeydown: moveInMatrix },
    element("thead", {}, element("tr", {}, element("th", { class: "corner" }, "from \\ to"), heads)), element("tbody", {}, rows)));
}

// matrixCell returns the cell of a pair, with the letters of what is not plain.
function matrixCell(from, to, cells, letters) {
  if (!cells) return element("td", { class: "none" });
  const open = cells.filter((cell) => cell.verdict === "REACHABLE").length;
  const text = [...new Set(cells.map(shownAs).filter((shown) => shown !== "REACHABLE" && shown !== "UNREACHABLE").map((shown) => letters.get(shown)))].join("");
  const share = open === 0 ? 0 : open === cells.length ? 10 : Math.min(9, Math.max(1, Math.floor((10 * open) / cells.length)));
  const unknown = open === 0 && cells.some((cell) => !["UNREACHABLE", "ONE-WAY"].includes(cell.verdict));
  const pair = from + " to " + to;
  return element("td", { class: unknown ? "unknown" : "s" + share, title: [pair, ...cells.map((cell) => cell.port + " " + cell.verdict)].join("\n") },
    element("a", { href: route("reach", from, to), tabindex: -1, "aria-label": pair + ": " + open + " of " + cells.length + " ports reachable" }, text || "\u00a0"));
}

// shownAs returns as what the legend shows a cell.
function shownAs(cell) {
  return cell.verdict === "REACHABLE" && cell.asked.some((asked) => asked.reply) ? "REPLY" : cell.verdict;
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

// fitMatrix makes the matrix no wider than some pixels.
function fitMatrix(width) {
  const cells = drawnMatrix && drawnMatrix.querySelector("table");
  if (!cells) return;
  cells.style.zoom = 1;
  cells.style.zoom = Math.min(1, width / cells.offsetWidth);
}
