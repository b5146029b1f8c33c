// Whole documents: dropped on the page or chosen, translated, and offered as a download.

import { post } from "./api.js";

const FORMATS = { md: "markdown", markdown: "markdown", html: "html", htm: "html", srt: "srt", vtt: "vtt", txt: "text" };
const TYPES = { markdown: "text/markdown", html: "text/html", srt: "application/x-subrip", vtt: "text/vtt", text: "text/plain" };
const byId = (id) => document.getElementById(id);

export class Files {
  // `settings` has the limit of characters; `model` gives the model that is chosen.
  constructor(settings, model, failed) {
    this.settings = settings;
    this.model = model;
    this.failed = failed;
    byId("file").addEventListener("change", (event) => {
      if (event.target.files[0]) this.translate(event.target.files[0]);
      event.target.value = "";
    });
    let inside = 0; // dragenter and dragleave also come for every element below
    const isFile = (event) => event.dataTransfer?.types.includes("Files");
    addEventListener("dragenter", (event) => {
      if (isFile(event)) document.body.classList.toggle("dropping", ++inside > 0);
    });
    addEventListener("dragleave", (event) => {
      if (isFile(event)) document.body.classList.toggle("dropping", --inside > 0);
    });
    addEventListener("dragover", (event) => isFile(event) && event.preventDefault());
    addEventListener("drop", (event) => {
      if (!isFile(event)) return;
      event.preventDefault();
      inside = 0;
      document.body.classList.remove("dropping");
      this.translate(event.dataTransfer.files[0]);
    });
  }

  async translate(file) {
    const link = byId("download");
    const status = byId("file-status");
    link.hidden = true;
    const dot = file.name.lastIndexOf(".");
    const format = FORMATS[file.name.slice(dot + 1).toLowerCase()];
    if (!format) {
      status.textContent = `${file.name}: not a Markdown, HTML, subtitle or text file.`;
      return;
    }
    status.textContent = `Translating ${file.name}…`;
    try {
      const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await file.arrayBuffer());
      const limit = this.settings.charLimit;
      if (text.length > limit) {
        status.textContent = `${file.name}: ${text.length} characters, but this server takes ${limit}.`;
        return;
      }
      const model = this.model();
      const found = await post("/v1/translate", { text, format, model: model.name });
      const [result] = found.results;
      if (link.href) URL.revokeObjectURL(link.href);
      link.href = URL.createObjectURL(new Blob([result.text], { type: TYPES[format] }));
      link.download = `${file.name.slice(0, dot)}.${model.target || "translated"}${file.name.slice(dot)}`;
      link.hidden = false;
      status.textContent = `${file.name}: ${told(result.report)} in ${found.seconds.toFixed(1)} s.`;
    } catch (error) {
      status.textContent = "";
      if (error instanceof TypeError) status.textContent = `${file.name}: not in UTF-8; convert it first.`;
      else this.failed(error);
    }
  }
}

function told(report) {
  const parts = [`${report.sentences} sentence${report.sentences === 1 ? "" : "s"}`];
  if (report.protected_spans) parts.push(`${report.protected_spans} protected spans`);
  if (report.unplaced_tags) parts.push(`${report.unplaced_tags} tags placed by guess`);
  if (report.kept_blocks) parts.push(`${report.kept_blocks} blocks left as they were`);
  return parts.join(", ");
}
