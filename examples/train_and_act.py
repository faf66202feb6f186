"""Train a small agent, load the best weights and play one episode in Gymnasium's own CartPole."""

import gymnasium

import hotloop

settings = hotloop.preset("cartpole-dqn", total_env_steps=20_000)
result = hotloop.train(settings)
print(f"mean return {result['evaluation']['mean_return']:.0f} at {result['env_steps_per_second']:,.0f} env steps/s")

agent = hotloop.load(result["run"])
env = gymnasium.make("CartPole-v1")
obs, _ = env.reset(seed=0)
total, done = 0.0, False
while not done:
    obs, reward, terminated, truncated, _ = env.step(agent.act(obs))
    total += float(reward)
    done = terminated or truncated
print(f"one episode: {total:.0f}")
