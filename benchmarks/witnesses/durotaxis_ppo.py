"""PPO on growing graphs: colonies stepped one after another, a value for each part of the reward.

`Agent` asks the network for one graph per forward, `BatchedAgent` for all graphs of a step or minibatch in one. Run it
as it stands.
"""

import argparse
import math
import random
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical, Normal, kl_divergence

PARTS = ("total", "graph", "spawn", "delete", "edge", "total_node")


@dataclass
class Config:
    rollout_steps: int = 2048  # over all colonies
    epochs: int = 4
    batch_size: int = 64
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    value_clip: float = 0.2
    value_weight: float = 0.5
    part_weights: tuple = (1.0, 0.4, 0.3, 0.2, 0.2, 0.3)
    entropy_weight: float = 0.03
    kl_stop: float = 0.03
    max_grad_norm: float = 0.5
    lr: float = 3e-4
    adam_epsilon: float = 1e-5


class Draws:
    """Where random numbers come from; a tape with the same three methods replays a run."""

    def normal(self, count):
        return torch.randn(count)

    def uniform(self, count):
        return torch.rand(count)

    def permutation(self, count):
        return torch.randperm(count)


def log_slope(u):
    """log(1 - tanh(u)^2)"""
    return 2.0 * (math.log(2.0) - u - nn.functional.softplus(-2.0 * u))


def log_prob(policy, action, mask):
    """Of the numbers that count as they were before tanh, and the mean over nodes of their choices'."""
    u = action["u"]
    numbers = (Normal(policy.mean, policy.log_std.exp()).log_prob(u) - log_slope(u))[mask].sum()
    if policy.logits is None:
        return numbers
    return numbers + Categorical(logits=policy.logits).log_prob(action["choices"]).mean()


def entropy(policy, mask):
    """The mean slope of tanh under a normal has no closed form: trapezoid rule from -6.4 to 6.4 deviations."""
    std = policy.log_std.exp()
    z = torch.linspace(-6.4, 6.4, 33)
    density = 0.4 * torch.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    slope = (density * log_slope(policy.mean.unsqueeze(1) + std.unsqueeze(1) * z)).sum(1)
    numbers = (Normal(policy.mean, std).entropy() + slope)[mask].sum()
    return numbers if policy.logits is None else numbers + Categorical(logits=policy.logits).entropy().mean()


def kl(old, new, mask):
    """KL(old || new); squashing both changes nothing."""
    numbers = kl_divergence(Normal(old.mean, old.log_std.exp()), Normal(new.mean, new.log_std.exp()))[mask].sum()
    if old.logits is None:
        return numbers
    return numbers + kl_divergence(Categorical(logits=old.logits), Categorical(logits=new.logits)).mean()


def compute_gae(rewards, values, last_value, final_values, terminated, truncated, gamma, lam):
    """Advantages and returns of one colony's steps and one part of the reward, as lists."""
    advantages: list = []
    returns: list = []
    gae, next_value = 0.0, last_value
    for t in reversed(range(len(rewards))):
        if terminated[t]:
            next_value, gae = 0.0, 0.0
        elif truncated[t]:
            next_value, gae = final_values[t], 0.0
        delta = rewards[t] + gamma * next_value - values[t]
        gae = delta + gamma * lam * gae
        advantages.insert(0, gae)
        returns.insert(0, gae + values[t])
        next_value = values[t]
    return advantages, returns


class Agent:
    def __init__(self, config, network, to_tensors, draws=None):
        self.config, self.network, self.to_tensors = config, network, to_tensors
        self.draws = Draws() if draws is None else draws
        self.optimizer = torch.optim.Adam(network.parameters(), lr=config.lr, eps=config.adam_epsilon)
        self.env_steps = self.updates = 0

    @torch.no_grad()
    def act(self, observation, mask):
        """A row of the rollout: what was seen and drawn. Normals for the numbers come first, then the choices."""
        graph = self.to_tensors(observation)
        policy = self.network(graph)
        noise = torch.as_tensor(self.draws.normal(len(policy.mean)), dtype=torch.float32)
        action = {"u": policy.mean + policy.log_std.exp() * noise}
        if policy.logits is not None:
            spawns = Categorical(logits=policy.logits).probs[:, 0]
            action["choices"] = (torch.as_tensor(self.draws.uniform(len(spawns))) >= spawns).long()
        mask = torch.as_tensor(mask)
        row = {"graph": graph, "policy": policy, "action": action, "mask": mask}
        return row | {"log_prob": log_prob(policy, action, mask), "values": policy.values.tolist()}

    @torch.no_grad()
    def values(self, observation):
        return self.network(self.to_tensors(observation)).values.tolist()

    def collect(self, colonies, observations):
        """Step the colonies in turn; rows in time order, the colonies of one time side by side. `observations` is
        brought up to date."""
        rows, episodes = [], []
        for _ in range(self.config.rollout_steps // len(colonies)):
            for i, colony in enumerate(colonies):
                row = self.act(observations[i], colony.action_mask())
                observation, rewards, terminated, truncated, info = colony.step(to_env(colony, row["action"]))
                row |= {"rewards": [rewards[part] for part in PARTS], "terminated": terminated, "truncated": truncated}
                row["final_values"] = self.values(observation) if truncated else [0.0] * len(PARTS)
                if terminated or truncated:
                    episodes.append(info | {"length": colony.step_count})
                    observation = colony.reset()
                observations[i] = observation
                rows.append(row)
                self.env_steps += 1
        self.add_advantages(rows, [self.values(observation) for observation in observations])
        return rows, episodes

    def add_advantages(self, rows, last_values):
        """To every row its `returns`, one for each part, and the `advantage` of the first part, the total."""
        count, config = len(last_values), self.config
        for i in range(count):
            own = rows[i::count]
            flags = [row["terminated"] for row in own], [row["truncated"] for row in own]
            for row in own:
                row["returns"] = []
            for p in range(len(PARTS)):
                rewards, values, final_values = (
                    [row[name][p] for row in own] for name in ("rewards", "values", "final_values")
                )
                advantages, returns = compute_gae(
                    rewards, values, last_values[i][p], final_values, *flags, config.gamma, config.gae_lambda
                )
                for row, advantage, value in zip(own, advantages, returns, strict=True):
                    row["returns"].append(value)
                    if p == 0:
                        row["advantage"] = advantage

    def update(self, rows):
        """Some epochs over the rows; the measures of every minibatch."""
        measures: list = []
        for _ in range(self.config.epochs):
            order = [int(index) for index in self.draws.permutation(len(rows))]
            epoch = []
            for start in range(0, len(order), self.config.batch_size):
                batch = [rows[index] for index in order[start : start + self.config.batch_size]]
                epoch.append(self.update_minibatch(batch))
            measures += epoch
            if np.mean([measure["kl"] for measure in epoch]) > self.config.kl_stop:
                break
        return measures

    def update_minibatch(self, batch):
        loss, measure = self.loss(batch)
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), self.config.max_grad_norm)
        self.optimizer.step()
        self.updates += 1
        return measure | {"gradient_norm": norm.item()}

    def loss(self, batch):
        """Means over the minibatch."""
        config = self.config
        log_probs, mean_entropy, mean_kl, values = self.judge(batch)
        ratio = torch.exp(log_probs - torch.stack([row["log_prob"] for row in batch]))
        advantage = torch.tensor([row["advantage"] for row in batch])
        advantage = (advantage - advantage.mean()) / (advantage.std(unbiased=False) + 1e-8)
        clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
        policy_loss = -torch.min(ratio * advantage, clipped * advantage).mean()
        value_loss = self.value_loss(values, batch)
        loss = policy_loss + config.value_weight * value_loss - config.entropy_weight * mean_entropy
        measure = {"loss": loss, "policy_loss": policy_loss, "value_loss": value_loss, "entropy": mean_entropy}
        measure |= {"kl": mean_kl, "clip_fraction": ((ratio - 1).abs() > config.clip).float().mean()}
        return loss, {name: value.item() for name, value in measure.items()}

    def judge(self, batch):
        """One forward per graph: log-probabilities [B], mean entropy, mean KL and values [B, parts]."""
        policies = [self.network(row["graph"]) for row in batch]
        pairs = list(zip(policies, batch, strict=True))
        log_probs = torch.stack([log_prob(policy, row["action"], row["mask"]) for policy, row in pairs])
        mean_entropy = torch.stack([entropy(policy, row["mask"]) for policy, row in pairs]).mean()
        with torch.no_grad():
            mean_kl = torch.stack([kl(row["policy"], policy, row["mask"]) for policy, row in pairs]).mean()
        return log_probs, mean_entropy, mean_kl, torch.stack([policy.values for policy in policies])

    def value_loss(self, values, batch):
        """Squared errors [B, parts], each part with its weight; a value that moved far may not gain by it."""
        clip = self.config.value_clip
        old = torch.tensor([row["values"] for row in batch])
        returns = torch.tensor([row["returns"] for row in batch])
        held = old + (values - old).clamp(-clip, clip)
        error = torch.max((values - returns) ** 2, (held - returns) ** 2)
        return (error.mean(0) * torch.tensor(self.config.part_weights)).sum()


class BatchedAgent(Agent):
    """One forward for all colonies of a step, and one for all graphs of a minibatch.

    `collate` makes one batch of several graphs; the network takes it and answers with one row per graph.
    """

    def __init__(self, config, network, to_tensors, collate, draws=None):
        super().__init__(config, network, to_tensors, draws)
        self.collate = collate

    @torch.no_grad()
    def act_all(self, observations, masks):
        """A row for every colony."""
        graphs = [self.to_tensors(observation) for observation in observations]
        policy = self.network(self.collate(graphs))
        numbers, choices = self.draw_all(policy, [len(graph["nodes"]) for graph in graphs])
        masks = torch.as_tensor(np.array(masks))
        log_probs = log_prob_all(policy, numbers, torch.cat(choices) if choices else None, masks)
        rows = []
        for i, (graph, values) in enumerate(zip(graphs, policy.values.tolist(), strict=True)):
            action = {"u": numbers[i]} | ({"choices": choices[i]} if choices else {})
            row = {"graph": graph, "action": action, "mask": masks[i], "log_prob": log_probs[i], "values": values}
            row |= {"mean": policy.mean[i], "log_std": policy.log_std[i]}
            rows.append(row | ({"logits": policy.logits[policy.graph_of_node == i]} if choices else {}))
        return rows

    def draw_all(self, policy, sizes):
        """Numbers [colonies, numbers] and the choices of each colony's nodes: one colony after the other."""
        std, spawns = policy.log_std.exp(), None
        if policy.logits is not None:
            spawns = Categorical(logits=policy.logits).probs[:, 0].split(sizes)
        numbers, choices = [], []
        for i in range(len(sizes)):
            noise = torch.as_tensor(self.draws.normal(policy.mean.shape[1]), dtype=torch.float32)
            numbers.append(policy.mean[i] + std[i] * noise)
            if spawns is not None:
                choices.append((torch.as_tensor(self.draws.uniform(sizes[i])) >= spawns[i]).long())
        return torch.stack(numbers), choices

    @torch.no_grad()
    def values_of(self, observations):
        return self.network(
            self.collate([self.to_tensors(observation) for observation in observations])
        ).values.tolist()

    def collect(self, colonies, observations):
        rows, episodes = [], []
        for _ in range(self.config.rollout_steps // len(colonies)):
            step = self.act_all(observations, [colony.action_mask() for colony in colonies])
            for i, (colony, row) in enumerate(zip(colonies, step, strict=True)):
                observation, rewards, terminated, truncated, info = colony.step(to_env(colony, row["action"]))
                row |= {"rewards": [rewards[part] for part in PARTS], "terminated": terminated, "truncated": truncated}
                row["final_values"] = self.values_of([observation])[0] if truncated else [0.0] * len(PARTS)
                if terminated or truncated:
                    episodes.append(info | {"length": colony.step_count})
                    observation = colony.reset()
                observations[i] = observation
                rows.append(row)
                self.env_steps += 1
        self.add_advantages(rows, self.values_of(observations))
        return rows, episodes

    def policies(self, batch):
        """What the network says now, what it said then, the actions [B, numbers], the choices and the masks."""
        new = self.network(self.collate([row["graph"] for row in batch]))
        logits = torch.cat([row["logits"] for row in batch]) if new.logits is not None else None
        then = {name: torch.stack([row[name] for row in batch]) for name in ("mean", "log_std")}
        old = new._replace(**then, logits=logits)
        choices = torch.cat([row["action"]["choices"] for row in batch]) if new.logits is not None else None
        numbers, masks = (
            torch.stack(part) for part in zip(*((row["action"]["u"], row["mask"]) for row in batch), strict=True)
        )
        return new, old, numbers, choices, masks

    def judge(self, batch):
        new, old, numbers, choices, masks = self.policies(batch)
        with torch.no_grad():
            mean_kl = kl_all(old, new, masks).mean()
        return log_prob_all(new, numbers, choices, masks), entropy_all(new, masks).mean(), mean_kl, new.values


def mean_over_nodes(per_node, policy):
    """[all nodes] to [graphs]"""
    count = len(policy.mean)
    sizes = torch.bincount(policy.graph_of_node, minlength=count)
    return torch.zeros(count).index_add(0, policy.graph_of_node, per_node) / sizes


def log_prob_all(policy, u, choices, masks):
    numbers = (Normal(policy.mean, policy.log_std.exp()).log_prob(u) - log_slope(u)).mul(masks).sum(1)
    if policy.logits is None:
        return numbers
    return numbers + mean_over_nodes(Categorical(logits=policy.logits).log_prob(choices), policy)


def entropy_all(policy, masks):
    std = policy.log_std.exp()
    z = torch.linspace(-6.4, 6.4, 33)
    density = 0.4 * torch.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    slope = (density * log_slope(policy.mean.unsqueeze(2) + std.unsqueeze(2) * z)).sum(2)
    numbers = (Normal(policy.mean, std).entropy() + slope).mul(masks).sum(1)
    if policy.logits is None:
        return numbers
    return numbers + mean_over_nodes(Categorical(logits=policy.logits).entropy(), policy)


def kl_all(old, new, masks):
    numbers = kl_divergence(Normal(old.mean, old.log_std.exp()), Normal(new.mean, new.log_std.exp()))
    numbers = numbers.mul(masks).sum(1)
    if old.logits is None:
        return numbers
    choices = kl_divergence(Categorical(logits=old.logits), Categorical(logits=new.logits))
    return numbers + mean_over_nodes(choices, old)


def to_env(colony, action):
    """Numbers in the colony's own units, with the choices if there are any."""
    low, high = colony.bounds()
    numbers = ((low + high) / 2 + (high - low) / 2 * np.tanh(action["u"].numpy())).astype(np.float32)
    return (numbers, action["choices"].tolist()) if "choices" in action else numbers


def train(agent, colonies, env_steps, say=print):
    """Train for so many steps over all colonies; returns the agent and what its finished episodes were like."""
    episodes: list = []
    observations = [colony.reset() for colony in colonies]
    start = time.time()
    while agent.env_steps < env_steps:
        rows, finished = agent.collect(colonies, observations)
        measures = agent.update(rows)
        episodes += finished
        say(
            f"{agent.env_steps} steps, {agent.updates} updates, {time.time() - start:.0f} s: "
            f"{len(finished)} episodes, {sum(episode['success'] for episode in finished)} reached the goal, "
            f"reward {np.mean([row['rewards'][0] for row in rows]):.3f}, "
            f"{np.mean([len(row['graph']['nodes']) for row in rows]):.1f} nodes, "
            f"KL {measures[-1]['kl']:.4f}, entropy {measures[-1]['entropy']:.2f}"
        )
    return agent, episodes


def main():
    from durotaxis_env import Colony  # type: ignore[import-not-found]  # the files beside this one
    from durotaxis_network import BatchedGraphActorCritic, collate, to_tensors  # type: ignore[import-not-found]

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env-steps", type=int, default=4_096)
    parser.add_argument("--rollout-steps", type=int, default=2_048)
    parser.add_argument("--colonies", type=int, default=8)
    parser.add_argument("--substrate", choices=["linear", "exponential", "random"], default="linear")
    parser.add_argument("--action", choices=["ratio", "per_node"], default="ratio")
    parser.add_argument("--reward", default="centroid_distance_only")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    torch.manual_seed(arguments.seed)
    options = {name: getattr(arguments, name) for name in ("substrate", "action", "reward")}
    colonies = [Colony(options) for _ in range(arguments.colonies)]
    per_node = arguments.action == "per_node"
    network = BatchedGraphActorCritic(num_numbers=4 if per_node else 5, per_node=per_node)
    start = time.time()
    config = Config(rollout_steps=arguments.rollout_steps)
    agent, _ = train(BatchedAgent(config, network, to_tensors, collate), colonies, arguments.env_steps)
    seconds = time.time() - start
    print(f"{agent.env_steps / seconds:.0f} steps and {agent.updates / seconds:.2f} updates per second")


if __name__ == "__main__":
    main()
