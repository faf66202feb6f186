"""Every forty env calls are followed by forty of evaluation. Remedy: a fifth of that."""

from training import Drift, Learner, arguments, train

options = arguments(env_calls=3000)
learner, arena = Learner(), Drift(seed=9)


def evaluate(agent, env, env_calls):
    obs, _ = env.reset()
    total = 0.0
    for _ in range(env_calls):
        obs, reward, *_ = env.step(agent.act(obs))
        total += reward.mean()
    return total


def now_and_then(call):
    if call % (200 if options.healthy else 40) == 0:
        evaluate(learner, arena, 40)


train(options.env_calls, learner=learner, after=now_and_then)
