// The race: two models translate one sentence, each alone, and their best times are shown as clocks.

import { post } from "./api.js";

const ROUNDS = 7;
const SECONDS_ON_SCREEN = 3.5; // for the slower one
const byId = (id) => document.getElementById(id);

// The models to race: two of different orders for the same languages, the fewer-step one last.
export function rivals(models) {
  for (const first of models) {
    for (const second of models) {
      const same = first.source === second.source && first.target === second.target;
      if (same && first.order === "1x1" && second.order !== "1x1") return [first, second];
    }
  }
  return null;
}

export class Race {
  constructor(models, failed) {
    this.models = models;
    this.failed = failed;
    this.lanes = models.map((model) => lane(model));
    byId("lanes").replaceChildren(...this.lanes.map((each) => each.box));
    byId("race-section").hidden = false;
    byId("race").addEventListener("click", () => this.run());
  }

  set text(value) {
    this.sentence = value;
    byId("race").disabled = !value;
  }

  async run() {
    const button = byId("race");
    button.disabled = true;
    cancelAnimationFrame(this.frame);
    byId("race-result").textContent = "Measuring…";
    try {
      const runs = await this.measure();
      await this.play(runs);
      byId("race-result").textContent = verdict(runs);
      button.textContent = "Again";
    } catch (error) {
      byId("race-result").textContent = "";
      this.failed(error);
    }
    button.disabled = !this.sentence;
  }

  // In turn, never at the same time: they would share the cores. The first round warms up.
  async measure() {
    const best = this.models.map(() => null);
    for (let round = 0; round <= ROUNDS; round += 1) {
      for (const [index, model] of this.models.entries()) {
        const body = { text: this.sentence, model: model.name, beam: 1, format: "lines" };
        const found = await post("/v1/translate", body);
        const sentence = found.results[0].sentences[0];
        const seconds = found.engine_seconds;
        if (round && (!best[index] || seconds < best[index].seconds)) {
          best[index] = { model, sentence, seconds };
        }
      }
    }
    return best;
  }

  play(runs) {
    const slowest = Math.max(...runs.map((run) => run.seconds));
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const slower = calm ? 0 : SECONDS_ON_SCREEN / slowest;
    const quickest = Math.min(...runs.map((run) => run.seconds));
    return new Promise((resolve) => {
      let begin = null;
      const draw = (now) => {
        begin ??= now;
        const passed = slower ? (now - begin) / 1000 / slower : slowest;
        runs.forEach((run, index) => {
          const part = Math.min(1, passed / run.seconds);
          paint(this.lanes[index], run, part, part === 1 && run.seconds === quickest);
        });
        if (passed < slowest) this.frame = requestAnimationFrame(draw);
        else resolve();
      };
      this.frame = requestAnimationFrame(draw);
    });
  }
}

function lane(model) {
  const box = document.createElement("div");
  box.className = "lane";
  const parts = {};
  for (const name of ["name", "text", "clock", "track", "steps"]) {
    parts[name] = document.createElement("div");
    parts[name].className = name;
    box.append(parts[name]);
  }
  parts.name.textContent = model.order;
  parts.clock.textContent = "–";
  parts.steps.classList.add("faint");
  parts.track.append(document.createElement("span"), document.createElement("span"));
  return { box, ...parts };
}

function paint(lane, run, part, first) {
  const { sentence, seconds } = run;
  const step = Math.floor(part * sentence.steps);
  const sides = sentence.towards;
  const nodes = [];
  let gap = null;
  sentence.pieces.forEach((piece, index) => {
    const text = piece.replace("▁", index ? " " : "");
    if (sentence.written_in[index] <= step || part === 1) {
      const span = document.createElement("span");
      span.className = sides[index] === "right" ? "r" : "l";
      span.textContent = text;
      nodes.push(span);
      gap = null;
    } else if (!gap) {
      gap = document.createElement("span");
      gap.className = "gap";
      gap.textContent = " ··· ";
      nodes.push(gap);
    }
  });
  lane.text.replaceChildren(...nodes);
  lane.clock.textContent = `${(1000 * seconds * part).toFixed(1)} ms`;
  lane.steps.textContent = `${step} of ${sentence.steps} steps`;
  lane.box.classList.toggle("first", first);
  const [left, right] = lane.track.children;
  const both = sides.includes("left");
  left.style.width = `${part * (both ? 50 : 100)}%`;
  right.style.width = `${both ? part * 50 : 0}%`;
}

function verdict(runs) {
  const [quick, slow] = [...runs].sort((a, b) => a.seconds - b.seconds);
  const times = slow.seconds / quick.seconds;
  if (times < 1.03) return "A tie, for this sentence on this machine.";
  return `${quick.model.order} is ${times.toFixed(2)} times as fast, for this sentence on this machine.`;
}
