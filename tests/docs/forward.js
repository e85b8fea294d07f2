// What exported models answer: reads {models, cases} on standard input, writes a list of answers.
const path = require("path");
const playground = path.join(__dirname, "../../docs/playground");
require(path.join(playground, "matrices.js"));
const web = require(path.join(playground, "model.js"));

const { scripts, cases } = JSON.parse(require("fs").readFileSync(0, "utf-8"));
scripts.forEach((script) => (0, eval)(script));
const models = Object.fromEntries(Object.entries(anyorderModels).map(([name, model]) => [name, web.load(model)]));
const answers = cases.map(({ name, points, tuples, order, numNodes, rows, target }) => {
  if (points) {
    const answer = models[name].forward(Float64Array.from(points));
    return { values: [...answer.logits], edges: web.edgesOf(answer) };
  }
  const index = new web.Index(order, numNodes, tuples);
  const targets = target ? { [target[0].length]: new web.Index(target[0].length, numNodes, target) } : {};
  return { values: [...models[name].forward(index, Float64Array.from(rows), targets).rows] };
});
console.log(JSON.stringify(answers));
