"""Versions of programs/plain.py: wrong ones with what their verdict must say, and right ones."""

from __future__ import annotations

from pathlib import Path

PLAIN = Path(__file__).with_name("programs") / "plain.py"
FIRST = "the same until update 1: then `body.0.weight` differs"
LATER = "the same until update 21: then `body.0.weight` differs"
SAME_BATCH = "the batch before it was the same"

MUTANTS: dict[str, tuple[list[tuple[str, str]], list[str]]] = {
    "learning rate": ([("lr=LR", "lr=2 * LR")], [FIRST, SAME_BATCH, "`lr` is 0.01", "the gradient was the same"]),
    "bias correction": ([("lr=LR", "lr=LR, betas=(0.9, 0.99)")], [FIRST, SAME_BATCH, "`betas` is"]),
    "gamma": (
        [("GAMMA, LR = 220, 40, 16, 0.9,", "GAMMA, LR = 220, 40, 16, 0.99,")],
        [FIRST, SAME_BATCH, "the loss was"],
    ),
    "missing detach": (
        [("with torch.no_grad():\n            best = target", "if True:\n            best = online")],
        [FIRST, SAME_BATCH, "the loss was the same", "the gradient was not the same"],
    ),
    "target one update late": (
        [("if updates % 20 == 0:", "if updates > 1 and updates % 20 == 1:")],
        [LATER, "the answer of `Net` to it was not: it has other parameters"],
    ),
    "target never moved": ([("if updates % 20 == 0:", "if updates < 0:")], [LATER, "it has other parameters"]),
    "mask forgotten": ([(".masked_fill(~masks, -1e9)", "")], [LATER, SAME_BATCH, "the loss was"]),
    "truncated taken for terminated": (
        [("next_obs, terminated, info[", "next_obs, terminated or truncated, info[")],
        ["differs", SAME_BATCH, "the loss was"],
    ),
    "ends not cut": ([("GAMMA * (1 - ended) * best", "GAMMA * best")], ["differs", SAME_BATCH, "the loss was"]),
    "epsilon one env step late": (
        [("1 - step / 100", "1 - (step - 1) / 100")],
        ["then `action` differs", "`random` had drawn other numbers"],
    ),
    "replay without the newest row": (
        [("random.sample(rows, BATCH)", "random.sample(rows[:-1], BATCH)")],
        [FIRST, "the batch before it was not the same"],
    ),
    "replay with old observations": (
        [("rows.append((obs,", "rows.append((next_obs,")],
        [FIRST, "the batch before it was not the same"],
    ),
    "warm-up one longer": (
        [("STEPS, WARM_UP, BATCH, GAMMA, LR = 220, 40", "STEPS, WARM_UP, BATCH, GAMMA, LR = 220, 41")],
        ["41 env steps", "180 updates", "179"],
    ),
    "every fourth update": (
        [("if step < WARM_UP:", "if step < WARM_UP or step % 4:")],
        ["until update 2: then", "180 updates", "45"],
    ),
    "reward clipped by the env": (
        [("terminated else -0.05)", "terminated else -0.04)")],
        ["env step 1: then `reward` differs"],
    ),
    "time limit off by one": ([("self.time >= 9,", "self.time > 9,")], ["then `truncated` differs: 1 in", "0 in"]),
    "flags swapped": (
        [("reward, terminated, self.time >= 9,", "reward, self.time >= 9, terminated,")],
        ["then `terminated` differs"],
    ),
    "mask of the wrong place": ([("self.place % 2], np.int8", "(self.place + 1) % 2], np.int8")], ["differs"]),
    "observation in half the width": (
        [("np.array([self.place / 6", "np.array([np.float16(self.place / 6)")],
        ["`observation` differs"],
    ),
    "other initial weights": (
        [("nn.Linear(3, 16), nn.Tanh()", "nn.Linear(3, 16, bias=False), nn.Tanh()")],
        ["`action` differs", "its parameters differ"],
    ),
    "weights drawn in another order": (
        [("env, online, target = Walk(SEED), Net(), Net()", "env, target, online = Walk(SEED), Net(), Net()")],
        ["differs"],
    ),
    "gradient not cleared": (
        [("        optimizer.zero_grad()\n", "")],
        ["update 2: then", SAME_BATCH, "gradient was not the same"],
    ),
    "sum for mean": ([("** 2).mean()", "** 2).sum()")], [FIRST, SAME_BATCH, "the loss was"]),
    "last update missing": (
        [("if step < WARM_UP:", "if step < WARM_UP or step == STEPS - 1:")],
        ["180 updates in", "179 in"],
    ),
}

EQUAL: dict[str, list[tuple[str, str]]] = {
    "renamed modules": [("self.body", "self.torso"), ("self.head", "self.q")],
    "fused batch columns": [
        (
            "        states = torch.tensor(np.array([row[0] for row in batch]))\n"
            "        actions = torch.tensor([row[1] for row in batch])",
            "        columns = list(zip(*batch))\n"
            "        states = torch.from_numpy(np.stack(columns[0]))\n"
            "        actions = torch.from_numpy(np.array(columns[1]))",
        )
    ],
    "target as one expression": [
        (
            "goal = rewards + GAMMA * (1 - ended) * best",
            "goal = torch.where(ended > 0, rewards, rewards + GAMMA * best)",
        )
    ],
    "draws of places instead of rows": [
        (
            "batch = random.sample(rows, BATCH)",
            "batch = [rows[place] for place in random.sample(range(len(rows)), BATCH)]",
        )
    ],
    "gradients set to none by hand": [
        ("optimizer.zero_grad()", "\n        for one in online.parameters():\n            one.grad = None")
    ],
    "target kept without a module's forward": [
        ("best = target(following)", "best = target.head(target.body(following))")
    ],
    "an env that moves in one look-up": [
        (
            "self.place = min(max(self.place + (-1, 1, 2)[action], 0), 6)",
            "self.place = (0, 0, 1, 2, 3, 4, 5, 6, 6, 6)[self.place + 1 + (-1, 1, 2)[action]]",
        )
    ],
    "inference mode while acting": [
        ("with torch.no_grad():\n                q =", "with torch.inference_mode():\n                q =")
    ],
}


def version(changes: list[tuple[str, str]]) -> str:
    text = PLAIN.read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text
