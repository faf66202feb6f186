"""The services and network functions of the workload, as numbers.

Compiled into the kernels, hence the file's name. Times count units of 0.01 ms, bandwidth kbps, lengths km: whole
numbers throughout, so that nothing is lost or found by rounding.
"""

from __future__ import annotations

import numpy as np

UNITS_PER_MS = 100
VNFS = ("nat", "fw", "voc", "tm", "wo", "idps")
SERVICES = ("cloud_gaming", "augmented_reality", "voip", "video_streaming", "massive_iot", "industry_4")
NUM_VNFS, NUM_SERVICES = len(VNFS), len(SERVICES)
MASSIVE_IOT = SERVICES.index("massive_iot")

# per VNF
CPU = np.array([1, 9, 5, 13, 5, 11])
RAM = np.array([4, 5, 11, 7, 2, 15])  # GB
STORAGE = np.array([7, 1, 13, 7, 5, 2])  # GB
PROCESSING = np.array([6, 3, 11, 7, 8, 2])  # units

# per service
LONGEST_CHAIN = 5
CHAIN = np.array(
    [
        [0, 1, 2, 4, 5],
        [0, 1, 3, 2, 5],
        [0, 1, 3, 1, 0],
        [0, 1, 3, 2, 5],
        [0, 1, 5, -1, -1],
        [0, 1, -1, -1, -1],
    ]
)
CHAIN_LENGTH = np.array([5, 5, 5, 5, 3, 2])
BANDWIDTH = np.array([4_000, 100_000, 64, 4_000, 1_000, 70_000])  # kbps; massive IoT: the lowest
IOT_BANDWIDTHS = 49_001  # 1 to 50 Mbps, by kbps
LIMIT = np.array([8_000, 1_000, 10_000, 10_000, 500, 800])  # units, end to end
FEWEST = np.array([40, 1, 100, 50, 10, 1])  # requests in a bundle
MOST = np.array([55, 4, 200, 100, 15, 4])
FIRST_SLOT = np.array([0, 55, 59, 259, 359, 374])
SLOTS_PER_ROUND = 378

# network
MOST_CENTRES = 16
CPU_RANGE = (12, 120)
RAM_CAPACITY, STORAGE_CAPACITY = 256, 2_048  # GB
LINK_CAPACITY = 1_000_000  # kbps
LENGTH_RANGE = (100, 1_000)  # km
KM_PER_UNIT = 3  # 300 km per ms

# time
MOST_ROUNDS = 10
ROUND_EVERY = 400  # units
LAST_UNIT = 20_000

# actions: allocate each VNF, uninstall each, wait
WAIT = 2 * NUM_VNFS
NUM_ACTIONS = WAIT + 1
