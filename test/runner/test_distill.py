"""Distillation: the losses by hand, teachers alone and together, stored outputs, and a real HTTP teacher that dies."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch
from conftest import as_model, copy_rows, events, outcome
from safetensors.torch import load_file
from seesaw_runner.distillation.losses import divergence, entropy, kl

ROLL = {"max_new_tokens": 8, "temperature": 1.0}
ARGS = {"learning_rate": 3e-3, "max_steps": 6, "per_device_train_batch_size": 8, "logging_steps": 1}


# ---- losses


def logprobs(*rows):
    return torch.tensor(rows).log()


def test_losses_by_hand():
    teacher, student = logprobs([0.5, 0.5], [0.9, 0.1]), logprobs([0.8, 0.2], [0.9, 0.1])
    forward, reverse = kl(teacher, student), kl(student, teacher)
    assert forward.tolist() == pytest.approx([0.223144, 0], abs=1e-5)  # ½ln(½/0.8) + ½ln(½/0.2)
    assert reverse.tolist() == pytest.approx([0.192745, 0], abs=1e-5)  # 0.8 ln 1.6 + 0.2 ln 0.4
    assert torch.equal(divergence(student, teacher, "gkd", beta=0), forward)
    assert torch.equal(divergence(student, teacher, "gkd", beta=1), reverse)
    half = divergence(student, teacher, "gkd", beta=0.5)
    mixture = torch.tensor([0.65, 0.35]).log()
    assert half[0].item() == pytest.approx(0.5 * (kl(teacher, mixture)[0] + kl(student, mixture)[0]).item(), abs=1e-6)
    aware = divergence(student, teacher, "entropy-aware", entropy_threshold=0.5)  # entropies ln 2 and 0.325
    assert aware.tolist() == pytest.approx([(reverse + forward)[0].item(), 0], abs=1e-5)
    assert entropy(teacher)[0].item() == pytest.approx(0.693147, abs=1e-5)


def test_an_impossible_token_is_no_nan():
    teacher = torch.tensor([[0.0, -torch.inf]])
    student = torch.tensor([[0.5, 0.5]]).log().requires_grad_(True)
    divergence(student, teacher, "forward-kl").sum().backward()
    assert torch.isfinite(student.grad).all()


# ---- the recipe


def prompts(n=32):
    rows = copy_rows(n, 1)
    for k, row in enumerate(rows):
        row["messages"].pop()  # a prompt needs no answer
        row["data_source"] = "copy" if k % 2 else "other"
    return rows


@pytest.fixture
def make_distill(make_run, taught_folder):
    def make(name="copy-20260101T000000-0001", train=None, args=None, models=None, **options):
        chosen = {"teachers": {"copy": "t", "other": "t"}, **ROLL, **options}
        return make_run(
            name,
            train=train or prompts(),
            recipe="distill",
            args={**ARGS, **(args or {})},
            options=chosen,
            models=models or {"t": as_model(taught_folder)},
        )

    return make


def metrics(run):
    return [e["values"] for e in events(run, "metric")]


def weights(run, step=6):
    return load_file(run / "checkpoints" / f"step-{step:06d}" / "model.safetensors")


def test_the_student_comes_closer_to_its_teachers(make_distill, recipe, taught_folder):
    before = (taught_folder / "model.safetensors").read_bytes()
    run = make_distill(args={"max_steps": 30}, loss="reverse-kl")
    assert recipe("distill", run) == 0
    told = metrics(run)
    assert told[-1]["copy/loss"] < told[0]["copy/loss"] and told[-1]["other/loss"] < told[0]["other/loss"]
    assert all(values["copy/dropped"] == values["copy/masked"] == 0 for values in told)
    assert 0 < told[0]["copy/length"] <= 9 and told[0]["copy/student_entropy"] > told[0]["copy/teacher_entropy"]
    assert (taught_folder / "model.safetensors").read_bytes() == before
    said = [e for e in events(run, "probe.scored") if e["split"] == "id"]
    assert said[-1]["summary"]["nll"] < said[0]["summary"]["nll"] - 3


def test_every_option_takes_effect(make_distill, recipe):
    """Each change of one option gives other weights; loading teachers one by one does not."""
    found = {}
    for k, (name, options) in enumerate(
        {
            "plain": {},
            "one": {"load": "one-by-one"},
            "forward": {"loss": "forward-kl"},
            "gkd": {"loss": "gkd", "beta": 0.3},
            "aware": {"loss": "entropy-aware", "entropy_threshold": 0.1},
            "cooler": {"temperature": 0.5},
            "shorter": {"max_new_tokens": 3},
            "nucleus": {"top_p": 0.5},
            "offline": {"offline": True, "top_k": 4},
        }.items()
    ):
        run = make_distill(f"copy-20260101T000000-{k:04x}", args={"max_steps": 2}, **options)
        assert recipe("distill", run) == 0, name
        found[name] = weights(run, 2)["model.embed_tokens.weight"]
    assert torch.equal(found["plain"], found.pop("one"))
    values = list(found.values())
    assert all(not torch.equal(a, b) for i, a in enumerate(values) for b in values[:i])


def test_resume_equals_going_through(make_distill, recipe):
    import shutil

    run = make_distill(args={"max_steps": 6})
    spec = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**spec, "save_every": 3}))
    assert recipe("distill", run) == 0
    expected = weights(run)
    shutil.rmtree(run / "checkpoints" / "step-000006")
    (run / "attempt-0002").mkdir()
    assert recipe("distill", run) == 0
    assert [e["resumed_from"] for e in events(run, "run.started")] == [None, 3]
    assert all(torch.equal(tensor, expected[name]) for name, tensor in weights(run).items())


def test_only_the_adapter_moves(make_distill, recipe, base_folder):
    run = make_distill(args={"max_steps": 3})
    spec = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**spec, "adapter": {"r": 2, "target_modules": "all-linear"}}))
    assert recipe("distill", run) == 0
    folder = run / "checkpoints" / "step-000003"
    assert (folder / "adapter_model.safetensors").exists() and not (folder / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"beta": 0.2}, "beta of the recipe distill is only of the loss gkd"),
        ({"loss": "reverse_kl"}, "Did you mean reverse-kl?"),
        ({"teachers": {"copy": "nobody"}}, "names 'nobody'"),
        ({"teachers": {"copy": 3}}, "must be a checkpoint, or have an endpoint and a model"),
        ({"teachers": {"third": "t"}}, "No row of"),
        ({"warmup": 1}, "has no option warmup"),
    ],
)
def test_options_that_cannot_be_followed(make_distill, recipe, options, said):
    run = make_distill(**options)
    assert recipe("distill", run) == 1 and said in outcome(run)["message"]


# ---- a teacher behind HTTP


class Server:
    """A teacher as vLLM serves one: real log-probabilities of the taught model. `dead_after` requests it only fails."""

    def __init__(self, model, tokenizer, dead_after=10**9, shift=0):
        self.requests, self.dead_after = [], dead_after
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append((dict(self.headers), body))
                if len(outer.requests) > outer.dead_after:
                    self.send_error(503)
                    return
                choices = []
                for k, ids in enumerate(body["prompt"]):
                    with torch.no_grad():
                        logits = model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
                    places = [None]
                    for at in range(1, len(ids)):
                        best = logits[at - 1].topk(body["prompt_logprobs"])
                        chosen = {*best.indices.tolist(), ids[at]}
                        places.append(
                            {
                                str(i): {
                                    "logprob": logits[at - 1, i].item(),
                                    "decoded_token": tokenizer.decode([i + shift]),
                                }
                                for i in chosen
                            }
                        )
                    choices.append({"index": k, "text": "", "prompt_logprobs": places})
                data = json.dumps({"choices": choices[::-1]}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def teacher(self):
        return {"endpoint": f"http://127.0.0.1:{self.server.server_port}/v1", "model": "taught", "timeout": 20}

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def serve(taught_folder, tokenizer, monkeypatch):
    from seesaw_runner.distillation import endpoint
    from seesaw_runner.training.loading import load_model

    monkeypatch.setattr(endpoint.time, "sleep", lambda seconds: None)
    model = load_model(str(taught_folder), torch.float32, torch.device("cpu")).eval()
    servers = []

    def start(**options):
        servers.append(Server(model, tokenizer, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def test_an_endpoint_teaches_as_the_checkpoint_does(make_distill, recipe, serve, monkeypatch):
    monkeypatch.setenv("SEESAW_TEST_KEY", "s3cret")
    server = serve()
    teacher = {**server.teacher, "key_env": "SEESAW_TEST_KEY"}
    whole = {"copy": "t", "other": "t"}
    local = make_distill("copy-20260101T000000-0001", args={"max_steps": 2}, teachers=whole)
    remote = make_distill(
        "copy-20260101T000000-0002", args={"max_steps": 2}, teachers={**whole, "copy": teacher}, top_k=320
    )
    assert recipe("distill", local) == 0 and recipe("distill", remote) == 0
    a, b = weights(local, 2), weights(remote, 2)
    assert all(torch.allclose(a[name], b[name], atol=2e-4) for name in a)  # all of the vocabulary: the same loss
    headers, body = server.requests[0]
    assert headers["Authorization"] == "Bearer s3cret" and body["prompt_logprobs"] == 320
    said = "".join(p.read_text(errors="replace") for p in remote.rglob("*") if p.suffix in (".json", ".jsonl"))
    assert "s3cret" not in said


def test_an_endpoint_that_dies_midway_costs_its_rows_and_nothing_else(make_distill, recipe, serve):
    server = serve(dead_after=2)
    run = make_distill(teachers={"copy": server.teacher, "other": "t"}, args={"max_steps": 5})
    assert recipe("distill", run) == 0
    told = metrics(run)
    assert told[0]["copy/dropped"] == 0 and told[-1]["copy/dropped"] > 0 and told[-1]["other/dropped"] == 0
    silent = [e for e in events(run, "warning") if e["code"] == "teacher-silent"]
    assert len(silent) == 1 and "503" in silent[0]["message"]


def test_all_teachers_dead_ends_the_stage_and_it_can_go_on(make_distill, recipe, serve):
    server = serve(dead_after=2)
    run = make_distill(teachers={"copy": server.teacher}, train=[r for r in prompts() if r["data_source"] == "copy"])
    spec = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**spec, "save_every": 1}))
    assert recipe("distill", run) == 1
    assert "No teacher has scored anything in 3 batches" in outcome(run)["message"]
    server.dead_after = 10**9
    (run / "attempt-0002").mkdir()
    assert recipe("distill", run) == 0
    assert events(run, "run.started")[-1]["resumed_from"] == 4  # two steps learned, two without a score


def test_an_endpoint_with_another_tokenizer_is_noticed(make_distill, recipe, serve):
    run = make_distill(teachers={"copy": serve(shift=40).teacher, "other": "t"}, top_k=64)
    assert recipe("distill", run) == 1
    assert "another tokenizer" in outcome(run)["message"]


def test_a_missing_key_is_said_before_anything_is_trained(make_distill, recipe):
    teacher = {"endpoint": "http://127.0.0.1:9/v1", "model": "m", "key_env": "SEESAW_NO_SUCH_KEY"}
    run = make_distill(teachers={"copy": teacher})
    assert recipe("distill", run) == 1 and "SEESAW_NO_SUCH_KEY" in outcome(run)["message"]
