// The OpenAPI description as a page.

const element = (name, content = "", className = "") => {
  const made = document.createElement(name);
  made.append(...[content].flat());
  if (className) made.className = className;
  return made;
};

const theme = localStorage.getItem("bothends-theme") ?? "system";
const dark = theme === "dark" || (theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
document.documentElement.dataset.theme = dark ? "dark" : "light";

const description = await (await fetch("/openapi.json")).json();
const resolve = (schema) => (schema?.$ref ? description.components.schemas[schema.$ref.split("/").pop()] : schema);

function kind(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(kind).join(" or ");
  if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(" | ");
  if (schema.type === "array") return `list of ${kind(schema.items)}`;
  return schema.type ?? "any";
}

function fields(schema) {
  const table = element("table");
  table.append(element("tr", ["field", "type", "default", "meaning"].map((name) => element("th", name))));
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const needed = (schema.required ?? []).includes(name);
    const usual = field.default === undefined || field.default === null ? "" : JSON.stringify(field.default);
    const cells = [element("code", name), kind(field), needed ? "required" : usual, field.description ?? ""];
    table.append(element("tr", cells.map((cell) => element("td", cell))));
  }
  const box = element("div", table, "scroll");
  box.tabIndex = 0; // so that keys can scroll it on a narrow screen
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Fields");
  return box;
}

for (const [path, verbs] of Object.entries(description.paths)) {
  for (const [verb, route] of Object.entries(verbs)) {
    const section = element("section", "", "card");
    section.append(element("h2", [element("span", verb.toUpperCase(), "verb"), element("code", path)]));
    section.append(element("p", route.summary ?? ""));
    const bodies = Object.entries(route.requestBody?.content ?? {});
    if (bodies.length) {
      section.append(element("p", `Body: ${bodies.map(([type]) => type).join(" or ")}`, "faint"));
      section.append(fields(resolve(bodies[0][1].schema)));
    }
    const good = resolve(route.responses["200"]?.content?.["application/json"]?.schema);
    const answer = good?.type === "array" ? resolve(good.items) : good;
    if (answer?.properties) section.append(element("p", "Answer", "faint"), fields(answer));
    const problems = Object.entries(route.responses).filter(([status]) => status !== "200" && status !== "422");
    for (const [status, each] of problems) section.append(element("p", `${status}: ${each.description}`, "faint"));
    document.getElementById("main").append(section);
  }
}
