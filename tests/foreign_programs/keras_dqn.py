"""A DQN in Keras as tutorials write it: a deque, `predict` for every action, `predict` and `fit` for every replay."""

import random
import sys
from collections import deque

import gymnasium as gym
import keras
import numpy as np


class DQNAgent:
    def __init__(self, state_size, action_size):
        self.state_size = state_size
        self.action_size = action_size
        self.memory = deque(maxlen=2000)
        self.gamma = 0.95
        self.epsilon = 1.0
        self.epsilon_min = 0.01
        self.epsilon_decay = 0.995
        self.learning_rate = 0.001
        self.model = self.build_model()

    def build_model(self):
        model = keras.Sequential(
            [
                keras.layers.Input((self.state_size,)),
                keras.layers.Dense(24, activation="relu"),
                keras.layers.Dense(24, activation="relu"),
                keras.layers.Dense(self.action_size, activation="linear"),
            ]
        )
        model.compile(loss="mse", optimizer=keras.optimizers.Adam(learning_rate=self.learning_rate))
        return model

    def remember(self, state, action, reward, next_state, done):
        self.memory.append((state, action, reward, next_state, done))

    def act(self, state):
        if np.random.rand() <= self.epsilon:
            return random.randrange(self.action_size)
        return np.argmax(self.model.predict(state, verbose=0)[0])

    def replay(self, batch_size):
        minibatch = random.sample(self.memory, batch_size)
        states = np.concatenate([row[0] for row in minibatch])
        next_states = np.concatenate([row[3] for row in minibatch])
        targets = self.model.predict(states, verbose=0)
        next_q = self.model.predict(next_states, verbose=0)
        for i, (_, action, reward, _, done) in enumerate(minibatch):
            targets[i, action] = reward if done else reward + self.gamma * np.amax(next_q[i])
        self.model.fit(states, targets, epochs=1, verbose=0)
        if self.epsilon > self.epsilon_min:
            self.epsilon *= self.epsilon_decay


env = gym.make("CartPole-v1")
agent = DQNAgent(4, 2)
batch_size = 32
total_steps, step, episode = int(sys.argv[1]), 0, 0
while step < total_steps:
    state, _ = env.reset()
    state = np.reshape(state, [1, 4])
    for time in range(500):
        action = agent.act(state)
        next_state, reward, terminated, truncated, _ = env.step(action)
        done = terminated or truncated
        reward = reward if not terminated else -10
        next_state = np.reshape(next_state, [1, 4])
        agent.remember(state, action, reward, next_state, done)
        state = next_state
        step += 1
        if len(agent.memory) > batch_size:
            agent.replay(batch_size)
        if done or step >= total_steps:
            print(f"episode {episode}, score {time}, epsilon {agent.epsilon:.2}")
            break
    episode += 1
