// How pictures of networks are laid out: dagre puts the boxes of each connected part into columns, and the parts are put
// beside and below each other.

const gap = 30; // between parts of a picture

// arranged lays out boxes, and returns them with their positions, the size of all, and the ways of edges.
function arranged(graph, opened) {
  const joined = graph.boxes.map(() => new Set());
  for (const edge of graph.edges) {
    joined[edge.from.box].add(edge.from.port);
    joined[edge.to.box].add(edge.to.port);
  }
  const rows = graph.boxes.length > crowd ? fewerRows : mostRows;
  const boxes = graph.boxes.map((box, index) => measured(box, joined[index], opened.has(box) ? Infinity : rows));
  const parts = partsOfGraph(graph).map((part) => laidOut(boxes, part));
  return { boxes, size: packed(boxes, parts), ways: new Map(parts.flatMap((part) => part.edges.map((edge) => [edge, edgePath(edge, part.points.get(edge), boxes[edge.from.box], boxes[edge.to.box], columnsOf(part.boxes.map((index) => boxes[index])))]))) };
}

// partsOfGraph returns the connected parts of a graph, the largest first: indexes of boxes, and edges.
function partsOfGraph(graph) {
  const partOfBox = graph.boxes.map((_, index) => index);
  const top = (index) => (partOfBox[index] === index ? index : (partOfBox[index] = top(partOfBox[index])));
  for (const edge of graph.edges) partOfBox[top(edge.from.box)] = top(edge.to.box);
  const parts = new Map();
  const partFor = (index) => {
    if (!parts.has(top(index))) parts.set(top(index), { boxes: [], edges: [] });
    return parts.get(top(index));
  };
  graph.boxes.forEach((_, index) => partFor(index).boxes.push(index));
  for (const edge of graph.edges) partFor(edge.from.box).edges.push(edge);
  return [...parts.values()].sort((a, b) => b.boxes.length - a.boxes.length);
}

// laidOut lays out the boxes of a connected part, and adds its size and the points of its edges.
function laidOut(boxes, part) {
  const g = new dagre.graphlib.Graph({ multigraph: true });
  g.setGraph({ rankdir: "LR", nodesep: 26, ranksep: 70, edgesep: 12 });
  g.setDefaultEdgeLabel(() => ({}));
  for (const index of part.boxes) g.setNode(String(index), boxes[index]);
  part.edges.forEach((edge, number) => {
    if (edge.from.box !== edge.to.box) g.setEdge(String(edge.from.box), String(edge.to.box), {}, String(number));
  });
  dagre.layout(g);
  const points = new Map();
  part.edges.forEach((edge, number) => {
    const laid = g.edge({ v: String(edge.from.box), w: String(edge.to.box), name: String(number) });
    if (laid) points.set(edge, laid.points);
  });
  return { ...part, points, width: g.graph().width, height: g.graph().height };
}

// packed moves the parts to their places in rows that are about as wide as a window, and returns the size of all.
function packed(boxes, parts) {
  const widest = Math.max(1400, ...parts.map((part) => part.width));
  let [x, y, height, width] = [gap / 2, gap / 2, 0, 0];
  for (const part of parts) {
    if (x > gap && x + part.width > widest) [x, y, height] = [gap / 2, y + height + gap, 0];
    for (const index of part.boxes) {
      boxes[index].x += x;
      boxes[index].y += y;
    }
    for (const points of part.points.values()) for (const point of points) [point.x, point.y] = [point.x + x, point.y + y];
    x += part.width + gap;
    [width, height] = [Math.max(width, x), Math.max(height, part.height)];
  }
  return { width: width - gap / 2, height: y + height + gap / 2 };
}

// gridded puts boxes without edges into rows and columns.
function gridded(graph, opened) {
  const boxes = graph.boxes.map((box) => measured(box, new Set(), opened.has(box) ? Infinity : fewerRows));
  const width = Math.max(...boxes.map((box) => box.width)) + gap, height = Math.max(...boxes.map((box) => box.height)) + gap;
  const columns = Math.max(3, Math.floor(window.innerWidth / (0.8 * width)));
  boxes.forEach((box, index) => Object.assign(box, { x: (index % columns + 0.5) * width, y: (Math.floor(index / columns) + 0.5) * height }));
  return { boxes, size: { width: columns * width, height: Math.ceil(boxes.length / columns) * height }, ways: new Map() };
}

// rowMiddle returns the height of the row of a port in a box, or the middle of the head.
function rowMiddle(box, port) {
  const at = box.rows.findIndex((row) => row.index === port);
  return box.y - box.height / 2 + (at < 0 ? 16 : 30 + at * (rowHeight + 2) + rowHeight / 2);
}

// columnsOf returns from where to where each column of boxes is, from left to right: dagre puts the middles of its boxes
// above each other.
function columnsOf(boxes) {
  const columns = new Map();
  for (const box of boxes) {
    const column = columns.get(box.x) || { middle: box.x, left: Infinity, right: -Infinity };
    columns.set(box.x, { middle: box.x, left: Math.min(column.left, box.x - box.width / 2), right: Math.max(column.right, box.x + box.width / 2) });
  }
  return [...columns.values()].sort((a, b) => a.middle - b.middle);
}

// edgePath returns the way of an edge. It is level within the columns, at heights that dagre keeps free of boxes, and
// bends between them only, so that it runs through no box.
function edgePath(edge, points, from, to, columns) {
  if (from.x === to.x) { // both ends are in one column
    const x = columns.find((column) => column.middle === from.x).right;
    const [y1, y2] = [rowMiddle(from, edge.from.port), rowMiddle(to, edge.to.port)];
    return `M ${from.x + from.width / 2} ${y1} H ${x} C ${x + 40} ${y1} ${x + 40} ${y2} ${x} ${y2} H ${to.x + to.width / 2}`;
  }
  if (from.x > to.x) return edgePath({ from: edge.to, to: edge.from }, points && [...points].reverse(), to, from, columns);
  let path = `M ${from.x + from.width / 2} ${rowMiddle(from, edge.from.port)}`;
  let [x, y] = [from.x, rowMiddle(from, edge.from.port)];
  for (const column of columns.filter((one) => one.middle > from.x && one.middle <= to.x)) {
    const before = columns.find((one) => one.middle === x).right;
    const height = column.middle === to.x ? rowMiddle(to, edge.to.port) : heightAt(points, column.middle, y);
    const bend = (column.left - before) / 2;
    path += ` H ${before} C ${before + bend} ${y} ${column.left - bend} ${height} ${column.left} ${height}`;
    [x, y] = [column.middle, height];
  }
  return path + ` H ${to.x - to.width / 2}`;
}

// heightAt returns the height of an edge in the middle of a column that it passes.
function heightAt(points, x, otherwise) {
  const at = (points || []).find((point) => Math.abs(point.x - x) < 1);
  return at ? at.y : otherwise;
}
