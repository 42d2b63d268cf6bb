import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ChatTemplate } from "../../../src/inference/chatTemplate.ts";

const python = join(fileURLToPath(new URL("../../../", import.meta.url)), ".venv", process.platform === "win32" ? "Scripts/python.exe" : "bin/python");
const chat = [{ role: "user", content: "  Hi\n" }, { role: "assistant", content: "yes 😀\n\n" }, { role: "user", content: "more" }, { role: "assistant", content: "" }, { role: "assistant", content: "end" }];

/** White space around the block tags in every way that templates write it. */
const templates = [
  "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}{{ m.content }}</s>{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}",
  "{%- for m in messages %}\n  {{- '<' + m.role + '>' }}\n  {%- if m.role == 'assistant' %}\n    {%- generation %}\n      {{- m.content + '</s>' }}\n    {%- endgeneration %}\n  {%- else %}\n    {{- m.content }}\n  {%- endif %}\n{%- endfor %}\n",
  "{% for m in messages %}\n<{{ m.role }}>\n  {% if m.role == 'assistant' %}\n    {% generation %}\n\n    {{ m.content }}\n    {% endgeneration %}\n\n  tail\n  {% else %}\n  {{ m.content }}\n  {% endif %}\n{% endfor %}\n\n",
  "{% for m in messages %}{{ bos_token }}\n  {% generation -%}\n   \n x{{ m.content }} \n {%- endgeneration -%}\n  y\n{% if loop.last and add_generation_prompt %}  {%+ if true %}P{% endif %}{% endif %}{% endfor %}",
];

test("renders as transformers does, generation blocks and white space included", () => {
  const script = [
    "import json, sys",
    "from transformers.utils.chat_template_utils import render_jinja_template",
    "chat, templates = json.load(sys.stdin)",
    "def one(t, p):",
    "    out, spans = render_jinja_template(conversations=[chat], chat_template=t, add_generation_prompt=p, return_assistant_tokens_mask=True, bos_token='<s>')",
    "    return [out[0], spans[0]]",
    "print(json.dumps([[one(t, p) for p in (False, True)] for t in templates]))",
  ].join("\n");
  const told = JSON.parse(execFileSync(python, ["-c", script], { input: JSON.stringify([chat, templates]), encoding: "utf8" }).trim().split("\n").at(-1) ?? "") as [string, [number, number][]][][];
  for (const [index, template] of templates.entries()) {
    for (const prompt of [false, true]) {
      const [text, spans] = told[index]?.[prompt ? 1 : 0] ?? ["", []];
      const rendered = new ChatTemplate(template, { bos_token: "<s>" }).render(chat, null, prompt);
      assert.equal(rendered.text, text, `template ${index}`);
      // Python counts characters. A block of nothing is no span here: it has no token.
      const characters = Array.from(text);
      const units = (at: number): number => characters.slice(0, at).join("").length;
      assert.deepEqual(rendered.spans, spans.filter(([start, end]) => end > start).map(([start, end]) => ({ start: units(start), end: units(end) })), `template ${index}`);
    }
  }
});

test("a template without blocks marks nothing, and private-use characters of the row stay what they are", () => {
  const plain = new ChatTemplate("{{ messages[0].content }}", {});
  assert.deepEqual([plain.marksAnswers, plain.render(chat, null, false)], [false, { text: "  Hi\n", spans: [] }]);
  const marking = new ChatTemplate("{% generation %}{{ messages[0].content }}{% endgeneration %}", {});
  assert.deepEqual(marking.render([{ role: "user", content: "\ue0f0x\ue0f1" }], null, false), { text: "\ue0f0x\ue0f1", spans: [{ start: 0, end: 3 }] });
  assert.throws(() => new ChatTemplate("{{ raise_exception('no owls') }}", {}).render(chat, null, false), { reason: "bad-input", message: "The chat template rejects this row: no owls" });
});
